// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestShim(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shim")
	out, err := execute(t, "shim", "--weft", "../..", dir)
	require.NoError(t, err)
	require.Contains(t, out, dir+": 64 names forwarded to github.com/weftraft/weft/raft, 5 sub-packages of v3.7.0 copied")
	require.Contains(t, out, "go mod edit -replace go.etcd.io/raft/v3="+dir)
	require.FileExists(t, filepath.Join(dir, "raftpb", "raft.pb.go"))
	require.NoFileExists(t, filepath.Join(dir, "rafttest", "node_test.go"), "tests only with --tests")
	_, err = execute(t, "shim", "--weft", "../..", dir)
	require.NoError(t, err, "an earlier shim is replaced")
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
	for _, c := range []struct {
		says string
		args []string
	}{
		{"0 arguments, want one: raftswap shim DIR", []string{"shim"}},
		{"no checkout of Weft", []string{"shim", "--weft", dir, filepath.Join(dir, "new")}},
		{"by --weft", []string{"shim", filepath.Join(dir, "new")}},
		{"--coding is -1, want 0 (off) to 1073741824 bytes", []string{"shim", "--coding", "-1", dir}},
		{"not empty", []string{"shim", "--weft", "../..", dir}},
		{"no version of github.com/weftraft/weft is known", []string{"shim", filepath.Join(dir, "new")}},
		{"no such file", []string{"imports", filepath.Join(dir, "missing")}},
		{"unknown command", []string{"swap"}},
	} {
		_, err := execute(t, c.args...)
		require.ErrorContains(t, err, c.says)
	}
}

// What a host must do first is said before its compiler says it in its words.
func TestOlderHostIsTold(t *testing.T) {
	host := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(host, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module example.com/host\n\ngo 1.23\n\nrequire go.etcd.io/raft/v3 v3.6.0\n")
	write("a.go", "package a\n\nimport _ \"go.etcd.io/raft/v3\"\n")
	const note = "requires go.etcd.io/raft/v3 v3.6.0, which is older than v3.7.0"
	out, err := execute(t, "imports", host)
	require.NoError(t, err)
	require.Contains(t, out, note)
	require.Contains(t, out, filepath.Join(host, "a.go"))
	out, err = execute(t, "shim", "--weft", "../..", filepath.Join(host, "deep", "shim"))
	require.NoError(t, err)
	require.Contains(t, out, note)
	require.Contains(t, out, "go get go.etcd.io/raft/v3@v3.7.0")
	require.NotContains(t, out, "go mod vendor")

	write("go.mod", "module example.com/host\n\ngo 1.26\n\nrequire go.etcd.io/raft/v3 v3.7.0\n")
	write("vendor/modules.txt", "")
	out, err = execute(t, "shim", "--weft", "../..", filepath.Join(host, "deep", "shim"))
	require.NoError(t, err)
	require.NotContains(t, out, "older")
	require.Contains(t, out, "  go mod tidy\n  go mod vendor\n")
	out, err = execute(t, "imports", "-w", host)
	require.NoError(t, err)
	require.Contains(t, out, "after go mod tidy, run go mod vendor")
}

func TestImports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	require.NoError(t, os.WriteFile(file, []byte("package a\n\nimport _ \"go.etcd.io/raft/v3\"\n"), 0o644))
	for range 2 {
		out, err := execute(t, "imports", filepath.Dir(file))
		require.NoError(t, err)
		require.Equal(t, file+"\n", out, "listed, not changed")
	}
	_, err := execute(t, "imports", "-w", filepath.Dir(file))
	require.NoError(t, err)
	out, err := execute(t, "imports", filepath.Dir(file))
	require.NoError(t, err)
	require.Empty(t, out)
}
