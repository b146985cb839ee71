// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

func TestLargestCycleIsFound(t *testing.T) {
	require.Equal(t, []string{"b", "c", "d"}, largest(map[string][]string{
		"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b", "e"}, "e": {"f"}, "f": {"e"},
	}))
}

// The tool resolves names without the packages that raft imports: this test fails
// when that stops working, as every figure would then be 0.
func TestRaftIsResolved(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	p, err := load(root, "raft")
	require.NoError(t, err)
	needs := p.needs(func(string) bool { return true })
	require.Contains(t, needs["leader.go"], "replicate.go")
	require.Contains(t, needs["follower.go"], "log.go")
	n, _ := p.calls([]string{"leader.go"}, func(f string) bool { return f == "replicate.go" })
	require.Positive(t, n)
}

// Calls of what an extension sees of Raft are found although another package declares it.
func TestCallsOfImportedInterfacesAreCounted(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	p, err := load(root, extensions+"/coding")
	require.NoError(t, err)
	for _, imported := range p.types.Imports() {
		for _, name := range interfaces(imported) {
			n, from := p.callsOf(imported.Scope().Lookup(name).Type().Underlying().(*types.Interface), p.names())
			require.Greater(t, n, from)
			require.Positive(t, from, "%s.%s", imported.Name(), name)
		}
	}
}

// A name is used if another package selects it, or if the signature of such a name has it.
func TestUnusedNamesAreFound(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("internal/a/a.go", "package a\n\nconst Lonely = 1\n\ntype Result struct{}\n\nfunc Run() Result { return Result{} }\n\nfunc (Result) Text() Text { return \"\" }\n\ntype Text string\n\ntype Other int\n")
	write("internal/a/a_test.go", "package a\n\nvar _ = Lonely\n")
	write("b/b.go", "package b\n\nimport other \"github.com/weftraft/weft/internal/a\"\n\nfunc ForUsers() { other.Run() }\n")
	unused, err := unusedNames(root)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"internal/a": {"Lonely", "Other"}}, unused)
}

// A cluster of processes that does not come from the kit shows.
func TestProcessesWithoutTheKitAreCounted(t *testing.T) {
	root := t.TempDir()
	write := func(dir, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, dir, "x.go"), []byte("package x\n"+text), 0o644))
	}
	write("a", "import \"github.com/weftraft/weft/internal/lab\"\nvar _ = lab.StartCluster\nvar _ lab.Load\n")
	write("b", "import \"github.com/weftraft/weft/internal/process\"\nvar _ = process.Start\n")
	write("internal/lab", "import \"github.com/weftraft/weft/internal/process\"\nvar _ = process.Start\n")
	var out strings.Builder
	require.NoError(t, printKit(&out, root))
	require.Contains(t, out.String(), "packages with processes of nodes\t1\t1 b\n")
	require.Contains(t, out.String(), "packages with loads on processes\t1\t-\n")
}

func TestExportedNamesAreUsed(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	unused, err := unusedNames(root)
	require.NoError(t, err)
	require.Empty(t, unused, "write these names small, or have another package use them")
}
