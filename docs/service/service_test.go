// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package service_test executes the programs of docs/service.md.
package service_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/internal/ports"
)

// mostLines is how many lines of main.go there may be up to the first Propose.
const mostLines = 15

// TestFirstProgramRunsInANewModule copies the two files into a module of their own, as the
// document says, and runs them twice.
func TestFirstProgramRunsInANewModule(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	dir := t.TempDir()
	free, err := ports.Free(1)
	require.NoError(t, err)
	for _, name := range []string{"main.go", "words.go"} {
		src, err := os.ReadFile(filepath.Join(root, "docs", "service", "first", name))
		require.NoError(t, err)
		text := string(src)
		if name == "main.go" {
			_, program, ok := strings.Cut(text, "\npackage main\n")
			require.True(t, ok)
			before, _, ok := strings.Cut("package main\n"+program, ".Propose(")
			require.True(t, ok)
			lines := strings.Count(before, "\n") + 1
			t.Logf("the first Propose is on line %d", lines)
			require.LessOrEqual(t, lines, mostLines)
			text = strings.Replace("package main\n"+program, "127.0.0.1:7001", free[0], 1)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.Output()
		require.NoError(t, err, "%s %v: %s", name, args, out)
		return string(out)
	}
	run("go", "mod", "init", "words")
	// As long as no release is to be had: afterwards go mod tidy finds one.
	run("go", "mod", "edit", "-require=github.com/weftraft/weft@v0.1.0", "-replace=github.com/weftraft/weft="+root)
	run("go", "build", "-o", "words", ".")
	require.Equal(t, "hello: 1\n", run("./words"))
	require.Equal(t, "hello: 2\n", run("./words"))
}
