// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/weftraft/weft/internal/docs"
)

const (
	upstreamRoot = "go.etcd.io/raft/v3"
	weftRoot     = "github.com/weftraft/weft/raft"
)

// upstreamSize is the number of symbols, methods and fields that upstream's
// v3.7.0 exports: another number means that the list is not complete.
const upstreamSize = 226

// TestAPI compares what package raft exports with upstream's: nothing may be
// missing or different, and additions must stand in docs/divergence.md.
func TestAPI(t *testing.T) {
	theirs, ours := loadSurfaces(t)
	require.Len(t, theirs, upstreamSize)
	t.Logf("upstream exports %d symbols, methods and fields", len(theirs))
	for _, d := range differences(theirs, ours) {
		t.Error(d)
	}
	added := additions(theirs, ours)
	documented := documentedAdditions(t)
	for _, name := range added {
		t.Logf("addition: %s: %s", name, ours[name])
		if !slices.Contains(documented, name) {
			t.Errorf("%s is an addition to upstream's API; list it in docs/divergence.md", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(added, name) {
			t.Errorf("docs/divergence.md lists %s as an addition, and there is none of that name", name)
		}
	}
}

// differences lists what is in theirs and missing or different in ours.
func differences(theirs, ours surface) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		switch got, ok := ours[name]; {
		case !ok:
			list = append(list, fmt.Sprintf("%s is missing: %s", name, theirs[name]))
		case got != theirs[name]:
			list = append(list, fmt.Sprintf("%s differs:\n\tupstream %s\n\tours     %s", name, theirs[name], got))
		}
	}
	return list
}

func additions(theirs, ours surface) []string {
	var list []string
	for name := range ours {
		if _, ok := theirs[name]; !ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func loadSurfaces(t *testing.T) (theirs, ours surface) {
	t.Helper()
	root, err := docs.Root()
	require.NoError(t, err)
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports,
		Dir:  root,
	}, upstreamRoot, weftRoot)
	require.NoError(t, err)
	require.Len(t, pkgs, 2)
	for _, p := range pkgs {
		require.Empty(t, p.Errors, p.PkgPath)
		if p.PkgPath == upstreamRoot {
			theirs = surfaceOf(p.Types)
		} else {
			ours = surfaceOf(p.Types)
		}
	}
	return theirs, ours
}

// A row of the table of additions: | `Type` | `Field`, ... | or | upstream's `Type` | ... or
// | the package | `Name`, ... |.
var (
	addition = regexp.MustCompile("(?m)^\\| (?:the package|(upstream's )?`(\\w+)`) \\| ([^|]*) \\|")
	quoted   = regexp.MustCompile("`(\\w+)`")
)

func documentedAdditions(t *testing.T) []string {
	t.Helper()
	root, err := docs.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "divergence.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "\n## Additions to the API\n")
	require.True(t, ok)
	table, _, ok = strings.Cut(table, "\n## ")
	require.True(t, ok)
	return additionsOf(table)
}

// additionsOf reads the rows of the table: a type, which is an addition unless the row says
// that the type is upstream's, and its fields and methods; or names of the package.
func additionsOf(table string) (names []string) {
	for _, row := range addition.FindAllStringSubmatch(table, -1) {
		upstreams, typ, prefix := row[1] != "", row[2], ""
		if typ != "" {
			prefix = typ + "."
			if !upstreams {
				names = append(names, typ)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(row[3], -1) {
			names = append(names, prefix+m[1])
		}
	}
	return names
}

func TestAdditionsAreReadFromRows(t *testing.T) {
	require.Equal(t, []string{"New", "New.One", "New.Two", "Old.Three", "Four", "Alone"}, additionsOf("| type | fields | what |\n|---|---|---|\n"+
		"| `New` | `One`, `Two` | it has `Five` |\n| upstream's `Old` | `Three` | |\n| the package | `Four` | |\n| `Alone` |  | |\n"))
}

// TestSurfaceSeesDifferences changes one thing at a time in a small package:
// each change must show.
func TestSurfaceSeesDifferences(t *testing.T) {
	const base = `package raft
import "io"
const None uint64 = 0
var ErrStopped error
type inner struct{}
func (inner) Promoted() int { return 0 }
type Config struct { *inner; ID uint64; Tick int; hook func() }
func (c *Config) Validate(strict bool) error { return nil }
func (c Config) Copy() Config { return c }
type Storage interface { Term(i uint64) (uint64, error) }
type Count map[string][]Config
func New(w io.Writer, peers ...*Config) (Storage, error) { return nil, nil }
`
	theirs := surfaceOfSource(t, base)
	require.Equal(t, "func(io.Writer, []*raft.Config...) (raft.Storage, error)", theirs["New"])
	require.Equal(t, []string{
		"Config", "Config.Copy", "Config.ID", "Config.Promoted", "Config.Tick", "Config.Validate", "Count",
		"ErrStopped", "New", "None", "Storage", "Storage.Term",
	}, slices.Sorted(maps.Keys(theirs)))

	for _, c := range []struct{ from, to, name string }{
		{"None uint64 = 0", "None uint64 = 1", "None"},
		{"None uint64 = 0", "None = 0", "None"},
		{"const None uint64 = 0", "var None uint64", "None"},
		{"ErrStopped error", "ErrStopped io.Writer", "ErrStopped"},
		{"Promoted() int", "Promoted() uint", "Config.Promoted"},
		{"ID uint64", "ID int", "Config.ID"},
		{"ID uint64", "id uint64", "Config.ID"},
		{"ID uint64; Tick int", "Tick int; ID uint64", "Config.ID"},
		{"hook func()", "", "Config"}, // becomes comparable
		{"Validate(strict bool)", "Validate()", "Config.Validate"},
		{"(c Config) Copy", "(c *Config) Copy", "Config.Copy"},
		{"Term(i uint64) (uint64, error)", "Term(i uint64) (uint64, error); seal()", "Storage"},
		{"Term(i uint64)", "Term(i uint32)", "Storage.Term"},
		{"map[string][]Config", "map[string]*Config", "Count"},
		{"type Count", "type Count =", "Count"},
		{"peers ...*Config", "peers []*Config", "New"},
	} {
		changed := regexp.MustCompile(regexp.QuoteMeta(c.from)).ReplaceAllLiteralString(base, c.to)
		require.NotEqual(t, base, changed)
		require.NotEmpty(t, differences(theirs, surfaceOfSource(t, changed)), "%s -> %s", c.from, c.to)
		require.NotEqual(t, theirs[c.name], surfaceOfSource(t, changed)[c.name], "%s -> %s", c.from, c.to)
	}
	renamed := regexp.MustCompile(`\bstrict\b`).ReplaceAllString(base, "thorough")
	require.Empty(t, differences(theirs, surfaceOfSource(t, renamed)), "names of parameters do not matter")
	more := base + "func Extra() {}\n"
	require.Equal(t, []string{"Extra"}, additions(theirs, surfaceOfSource(t, more)))
}

func surfaceOfSource(t *testing.T, src string) surface {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "a.go", src, 0)
	require.NoError(t, err)
	// Only package io is imported, and only its Writer: made up here.
	io := types.NewPackage("io", "io")
	io.Scope().Insert(types.NewTypeName(token.NoPos, io, "Writer", nil))
	types.NewNamed(io.Scope().Lookup("Writer").(*types.TypeName), types.NewStruct(nil, nil), nil)
	io.MarkComplete()
	conf := types.Config{Importer: only{io}, Error: func(error) {}}
	pkg, _ := conf.Check("raft", fset, []*ast.File{f}, nil) // unused imports are all right
	return surfaceOf(pkg)
}

// only imports one package.
type only struct{ pkg *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.pkg, nil }
