// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is the non-test files of a package, and which names each file uses.
type pkg struct {
	fset  *token.FileSet
	files map[string]*ast.File // by base name
	info  *types.Info
	types *types.Package
}

// module is the path before those of this module's packages.
const module = "github.com/weftraft/weft/"

// load parses and resolves a package, with the packages of this module that it imports.
// Other imports stay unknown: no names of theirs are looked at.
func load(root, dir string) (*pkg, error) {
	p := &pkg{fset: token.NewFileSet(), files: map[string]*ast.File{}}
	b, err := build.Default.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return nil, err
	}
	var list []*ast.File
	for _, name := range b.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(b.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.files[name] = f
		list = append(list, f)
	}
	p.info = &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{Error: func(error) {}, Importer: importer(root)}
	p.types, _ = conf.Check(dir, p.fset, list, p.info) // the errors are about imports
	if p.types == nil {
		return nil, errors.New("package " + dir + " cannot be resolved")
	}
	return p, nil
}

// importer imports packages of the module at a root, and others as if they were empty.
type importer string

func (root importer) Import(path string) (*types.Package, error) {
	if dir, ok := strings.CutPrefix(path, module); ok {
		p, err := load(string(root), dir)
		if err != nil {
			return nil, err
		}
		return p.types, nil
	}
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// names returns the files in order.
func (p *pkg) names() []string {
	var out []string
	for name := range p.files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// fileOf returns the base name of the file in which an object is declared.
func (p *pkg) fileOf(o types.Object) string {
	if o == nil || o.Pkg() != p.types || !o.Pos().IsValid() {
		return ""
	}
	return filepath.Base(p.fset.Position(o.Pos()).Filename)
}

// uses calls visit for each name in a file that another place of the package
// declares at its top, as a method or as a field.
func (p *pkg) uses(file string, visit func(id *ast.Ident, o types.Object)) {
	ast.Inspect(p.files[file], func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o := p.info.Uses[id]
		if o == nil || o.Pkg() != p.types {
			return true
		}
		switch o := o.(type) {
		case *types.Func:
			visit(id, o.Origin())
		case *types.Var:
			if o.IsField() || o.Parent() == p.types.Scope() {
				visit(id, o)
			}
		default:
			if o.Parent() == p.types.Scope() {
				visit(id, o)
			}
		}
		return true
	})
}
