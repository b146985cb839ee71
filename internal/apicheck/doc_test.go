// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/weftraft/weft/internal/docs"
)

// TestEveryExportedNameIsDocumented walks all packages of all modules.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles, Dir: root}, "work")
	require.NoError(t, err)
	require.Greater(t, len(pkgs), 50, "more than the main module has")
	for _, p := range pkgs {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			require.NoError(t, err)
			if !ast.IsGenerated(f) {
				files = append(files, f)
			}
		}
		for _, name := range undocumented(t, fset, files, p.PkgPath) {
			t.Errorf("%s: no comment", name)
		}
	}
}

// wellKnown are the methods whose names say all.
var wellKnown = map[string]bool{"String": true, "Error": true, "Unwrap": true}

// undocumented lists the exported names of a package that have no comment, and
// the package itself if it has none. A group of constants or variables may
// share one; a field or an interface's method may have its comment at the end
// of the line, or share the one above its group.
func undocumented(t *testing.T, fset *token.FileSet, files []*ast.File, path string) []string {
	t.Helper()
	if len(files) == 0 {
		return nil
	}
	var missing []string
	report := func(at token.Pos, name string) {
		missing = append(missing, fset.Position(at).String()+": "+name)
	}
	isMain := files[0].Name.Name == "main"
	p, err := doc.NewFromFiles(fset, files, path)
	require.NoError(t, err)
	if strings.TrimSpace(p.Doc) == "" {
		report(files[0].Package, "package "+p.Name)
	}
	if isMain {
		return missing
	}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, s := range v.Decl.Specs {
				s := s.(*ast.ValueSpec)
				if v.Doc == "" && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
					report(s.Pos(), s.Names[0].Name)
				}
			}
		}
	}
	funcs := func(recv string, fs []*doc.Func) {
		for _, f := range fs {
			if f.Doc == "" && (recv == "" || !wellKnown[f.Name]) {
				report(f.Decl.Pos(), recv+f.Name)
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		if typ.Doc == "" {
			report(typ.Decl.Pos(), typ.Name)
		}
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		for _, s := range typ.Decl.Specs {
			members(fset, s.(*ast.TypeSpec), report)
		}
	}
	return missing
}

// members reports the fields of a struct and the methods of an interface that
// have no comment. Members on neighbouring lines form a group, and the comment
// above its first holds for all; that of the type holds for a first group
// without one, and for a type none of whose members has one.
func members(fset *token.FileSet, spec *ast.TypeSpec, report func(token.Pos, string)) {
	var list *ast.FieldList
	switch u := spec.Type.(type) {
	case *ast.StructType:
		list = u.Fields
	case *ast.InterfaceType:
		list = u.Methods
	default:
		return
	}
	if !slices.ContainsFunc(list.List, func(f *ast.Field) bool { return f.Doc != nil || f.Comment != nil }) {
		return
	}
	documented, line := true, 0
	for _, f := range list.List {
		if at := fset.Position(f.Pos()).Line; line != 0 && at > line+1 {
			documented = false // an empty line ends the group
		}
		line = fset.Position(f.End()).Line
		if f.Doc != nil {
			documented = true
		}
		embedded := len(f.Names) == 0 // documented where it is declared
		if !documented && !embedded && f.Comment == nil && f.Names[0].IsExported() {
			report(f.Pos(), spec.Name.Name+"."+f.Names[0].Name)
		}
	}
}

func TestMissingCommentsAreSeen(t *testing.T) {
	const src = `package a
const A = 1
var B int
func C() {}
type D struct {
	// E and J are said.
	E int
	J int

	K string // said

	L string
}
func (D) F() {}
func (D) String() string { return "" }
// G is said.
type G int
// H and I share.
const (
	H = 1
	I = 2
)
func (g G) private() {}
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "a.go", src, parser.ParseComments)
	require.NoError(t, err)
	var names []string
	for _, m := range undocumented(t, fset, []*ast.File{f}, "a") {
		names = append(names, m[strings.LastIndex(m, " ")+1:])
	}
	require.ElementsMatch(t, []string{"a", "A", "B", "C", "D", "D.F", "D.L"}, names)
}
