// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package adopt_test executes the section of docs/adopt.md on a loop of one's own.
package adopt_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// TestAdoptYourOwn runs each program of the section and compares what it prints with what the
// document shows.
func TestAdoptYourOwn(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	snippets, err := docs.Snippets(filepath.Join(root, "docs", "adopt.md"))
	require.NoError(t, err)
	ran := 0
	for _, s := range snippets {
		if s.Lang != "console" {
			continue
		}
		command, prints, _ := strings.Cut(s.Text, "\n")
		command, ok := strings.CutPrefix(command, "$ ")
		require.True(t, ok, s.Pos())
		cmd := exec.Command("sh", "-e", "-c", command)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", s.Pos(), out)
		require.Equal(t, prints, string(out), s.Pos())
		ran++
	}
	require.Equal(t, 2, ran, "before and after")
}
