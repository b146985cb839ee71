// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/weftraft/weft/internal/docs"
)

// maxNames bounds what rawnode and the parts of a host under it promise. A name that
// only simulators, benchmarks and this repository's own commands need belongs under
// internal.
const maxNames = 110

// TestNamesUnderRawnodeAreFew counts exported top-level names.
func TestNamesUnderRawnodeAreFew(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles, Dir: root},
		"github.com/weftraft/weft/rawnode/...")
	require.NoError(t, err)
	require.NotEmpty(t, pkgs)
	total := 0
	for _, p := range pkgs {
		if strings.Contains(p.PkgPath+"/", "/internal/") || isRoom(p.PkgPath) {
			continue
		}
		names := exportedNames(t, p.PkgPath, p.GoFiles)
		t.Logf("%s exports %d names: %s", p.PkgPath, len(names), strings.Join(names, " "))
		total += len(names)
	}
	require.Positive(t, total)
	require.LessOrEqual(t, total, maxNames, "exported names under rawnode; move what hosts do not need under internal (go test -v lists the names)")
}

// isRoom reports whether a package is beside the host, and not a part of it: a host needs none of them.
func isRoom(path string) bool {
	room, _, _ := strings.Cut(strings.TrimPrefix(path, "github.com/weftraft/weft/rawnode/"), "/")
	return slices.Contains([]string{"metrics", "rawnodetest", "state", "tracing"}, room)
}

// exportedNames returns the exported top-level names of a package.
func exportedNames(t *testing.T, path string, files []string) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err, filepath.Base(name))
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(fset, parsed, path, doc.AllDecls)
	require.NoError(t, err)
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			names = append(names, v.Names...)
		}
	}
	funcs := func(fs []*doc.Func) {
		for _, f := range fs {
			names = append(names, f.Name)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
	slices.Sort(names)
	return names
}
