// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package adopt_test executes docs/adopt-your-own.md.
package adopt_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// TestAdoptYourOwn runs each command of the document and compares what it prints
// with what the document shows.
func TestAdoptYourOwn(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	snippets, err := docs.Snippets(filepath.Join(root, "docs", "adopt-your-own.md"))
	require.NoError(t, err)
	ran := 0
	for i, s := range snippets {
		if s.Lang != "sh" {
			continue
		}
		require.Less(t, i+1, len(snippets), s.Pos())
		require.Equal(t, "text", snippets[i+1].Lang, "%s: what does it print?", s.Pos())
		cmd := exec.Command("sh", "-e", "-c", s.Text)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", s.Pos(), out)
		require.Equal(t, snippets[i+1].Text, string(out), s.Pos())
		ran++
	}
	require.Equal(t, 2, ran, "before and after")
}
