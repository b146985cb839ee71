// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// belowLeases is the methods of an extension that leases leave to the extension below them: all
// forms, lifts and surveys, and beside them
//
//   - brakes on what only coding can hold back: payloads, their bytes, and a winner's recovery;
//   - news that leases have from elsewhere, or no use for.
var belowLeases = append(methods[forms](), append(append(methods[lifts](), methods[surveys]()...),
	"CommittableBy", "MayLead", "MayPropose", "Recovered", "Releasable", "Room", "ShownMatch",
	"Cuts", "HandedOut", "Offered", "Stored", "Unreachable", "Claims", "TakeOver")...)

func methods[T any]() (names []string) {
	for m := range reflect.TypeFor[T]().Methods() {
		names = append(names, m.Name)
	}
	return names
}

// TestNothingReachesCodingAloneUnseen: both embeds the extension below leases, so a method that is
// added to the page would pass leases by in silence. Each method is defined for both, or is in
// the list.
func TestNothingReachesCodingAloneUnseen(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "extension_both.go", nil, 0)
	require.NoError(t, err)
	known := slices.Clone(belowLeases)
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "both" {
				known = append(known, fn.Name.Name)
			}
		}
	}
	slices.Sort(known)
	require.Equal(t, methods[extension](), known)
}

// TestDocNamesEveryFile: the package's doc is the way in to every file but the tests.
func TestDocNamesEveryFile(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && name != "doc.go" {
			require.True(t, strings.Contains(string(doc), name), name)
		}
	}
}
