// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// others uses the packages that are modules of their own.
const others = `package main

import (
	_ "github.com/weftraft/weft/rawnode/metrics"
	_ "github.com/weftraft/weft/rawnode/state/pebble"
	_ "github.com/weftraft/weft/rawnode/tracing"
)
`

// TestPageIsFollowedOutsideTheRepository follows docs/service.md line by line, in an empty
// directory in which only a clone lies: all that a reader has before the first release.
func TestPageIsFollowedOutsideTheRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("resolves modules, and builds a program")
	}
	root, err := docs.Root()
	require.NoError(t, err)
	script, err := docs.Script(filepath.Join(root, "docs", "service.md"))
	require.NoError(t, err)
	begin, run, ok := strings.Cut(script, "go mod tidy\n")
	require.True(t, ok, "the page has no go mod tidy: %s", script)
	dir := docs.Place(t, "service")
	require.NoError(t, os.Symlink(root, filepath.Join(dir, "weft")))
	words := filepath.Join(dir, "words")
	shell := func(in, commands string) string {
		cmd := exec.Command("sh", "-e", "-c", commands)
		cmd.Dir, cmd.Env = in, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s: %s", commands, stderr.String())
		return string(out)
	}
	shell(dir, begin)
	firstProgram(t, root, words)
	require.NoError(t, os.WriteFile(filepath.Join(words, "others.go"), []byte(others), 0o600))
	require.Equal(t, "hello: 1\n", shell(words, "go mod tidy\n"+run))
	require.Equal(t, "hello: 2\n", shell(words, run))
	mod, err := os.ReadFile(filepath.Join(words, "go.mod"))
	require.NoError(t, err)
	require.NotContains(t, string(mod), root, "the module names a path that the page does not")
}
