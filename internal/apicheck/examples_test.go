// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/weftraft/weft/internal/docs"
)

// withoutExample names packages that anybody can import and that need no example, and
// says why. What is under a folder is meant, too.
var withoutExample = map[string]string{
	"github.com/weftraft/weft/docs":            "programs that pages show",
	"github.com/weftraft/weft/examples":        "programs that are examples themselves",
	"github.com/weftraft/weft/rafttest":        "this repository's own test harness",
	"github.com/weftraft/weft/cmd/kvdemo/kvpb": "made by protoc; docs/kvdemo.md shows the service",
}

// TestPublicPackagesHaveExamples finds a package for users without an example that is run.
func TestPublicPackagesHaveExamples(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles, Dir: root}, "work")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, p := range pkgs {
		if p.Name == "main" || len(p.GoFiles) == 0 || strings.Contains(p.PkgPath+"/", "/internal/") || excused(p.PkgPath) {
			continue
		}
		found[p.PkgPath] = true
		assert.True(t, hasExample(t, filepath.Dir(p.GoFiles[0])), "%s has no example: write an Example function with an Output comment in %s/example_test.go",
			p.PkgPath, filepath.Dir(p.GoFiles[0]))
	}
	for _, path := range []string{"", "/raft", "/rawnode", "/storage", "/rawnode/metrics", "/rawnode/state/pebble"} {
		require.Contains(t, found, "github.com/weftraft/weft"+path)
	}
	require.False(t, hasExample(t, filepath.Join(root, "internal", "docs")), "a package without an example is noticed")
}

func excused(path string) bool {
	for folder := range withoutExample {
		if strings.HasPrefix(path+"/", folder+"/") {
			return true
		}
	}
	return false
}

// hasExample reports whether a test file in dir has an example that go test runs.
func hasExample(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, e := range doc.Examples(f) {
			if e.Output != "" || e.EmptyOutput {
				return true
			}
		}
	}
	return false
}
