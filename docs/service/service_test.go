// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package service_test executes the programs of docs/service.md.
package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/ports"
)

// mostLines is how many lines of main.go there may be up to the first Propose.
const mostLines = 15

// firstProgram writes the first program of the page into dir, with a free address, and holds
// the program to its length.
func firstProgram(t *testing.T, root, dir string) {
	t.Helper()
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
}
