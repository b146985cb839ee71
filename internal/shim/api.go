// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
)

// api is what one package exports, by name. Methods and fields are not listed:
// an alias brings them along.
type api struct {
	pkg     string
	fset    *token.FileSet
	decls   map[string]decl
	imports map[string]string // local name -> import path, over all files
}

// decl is one exported name of a package.
type decl struct {
	kind token.Token // CONST, VAR, TYPE or FUNC
	doc  *ast.CommentGroup
	fn   *ast.FuncDecl // for FUNC
}

// parseAPI reads the exported names of the package in dir, as built without
// build tags. Sources suffice: nothing is type-checked, so no dependency has to
// be there.
func parseAPI(dir string) (*api, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("shim: package in %s: %w", dir, err)
	}
	a := &api{pkg: pkg.Name, fset: token.NewFileSet(), decls: map[string]decl{}, imports: map[string]string{}}
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(a.fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("shim: %w", err)
		}
		if err := a.addImports(f); err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			a.add(d)
		}
	}
	return a, nil
}

func (a *api) addImports(f *ast.File) error {
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("shim: import %s: %w", spec.Path.Value, err)
		}
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if known, ok := a.imports[name]; ok && known != path {
			// Only a problem if a signature uses the name; forward looks.
			path = ""
		}
		a.imports[name] = path
	}
	return nil
}

func (a *api) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			a.decls[d.Name.Name] = decl{kind: token.FUNC, doc: d.Doc, fn: d}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			a.addSpec(d, s)
		}
	}
}

func (a *api) addSpec(d *ast.GenDecl, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			a.decls[s.Name.Name] = decl{kind: token.TYPE, doc: docOf(d, s.Doc)}
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() {
				a.decls[n.Name] = decl{kind: d.Tok, doc: docOf(d, s.Doc)}
			}
		}
	}
}

// docOf is a spec's own comment, or that of a declaration with just this spec.
func docOf(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if own == nil && len(d.Specs) == 1 {
		return d.Doc
	}
	return own
}
