// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// TestAdopt executes docs/adopt.md on the sample host: the import swap on one
// copy of it, the shim, with and without coding, and the way back on another, and
// the shim and the way back on a third with a vendor directory.
func TestAdopt(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	snippets, err := docs.Snippets(filepath.Join(root, "docs", "adopt.md"))
	require.NoError(t, err)
	snippets = slices.DeleteFunc(snippets, func(s docs.Snippet) bool { return s.Lang != "sh" && s.Lang != "text" })
	require.Len(t, snippets, 10, "five pairs of commands and what they print")

	swapped, shimmed, vendored := copyHost(t, "swapped"), copyHost(t, "shimmed"), copyHost(t, "vendored")
	before, err := os.ReadFile(filepath.Join(shimmed, "main.go"))
	require.NoError(t, err)
	follow(t, root, swapped, snippets[0:2])
	follow(t, root, shimmed, snippets[2:4])
	follow(t, root, shimmed, snippets[8:10])
	out, err := run(t, shimmed, []string{"WEFT_CODING=4k"}, "go", "run", ".")
	require.Error(t, err, "the shim reads the variable")
	require.Contains(t, out, `WEFT_CODING is "4k"; set it to on`)
	follow(t, root, shimmed, snippets[4:6])
	after, err := os.ReadFile(filepath.Join(shimmed, "main.go"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the shim needs no edit of the host")

	vendor := func() {
		_, err := run(t, vendored, nil, "go", "mod", "vendor")
		require.NoError(t, err)
	}
	vendor()
	follow(t, root, vendored, snippets[6:8])
	require.NoError(t, os.Rename(filepath.Join(vendored, "raft-shim"), filepath.Join(vendored, "gone")))
	out, err = run(t, vendored, []string{"GOPROXY=off"}, "go", "run", ".")
	require.NoError(t, err, "what is vendored is enough")
	require.True(t, strings.HasSuffix(out, snippets[7].Text), out)
	_, err = run(t, vendored, nil, "sh", "-e", "-c", strings.ReplaceAll(snippets[4].Text, "go run .", ""))
	require.NoError(t, err)
	_, err = run(t, vendored, nil, "go", "run", ".")
	require.ErrorContains(t, err, "inconsistent vendoring")
	vendor()
	out, err = run(t, vendored, nil, "go", "run", ".")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(out, snippets[5].Text), out)
}

// follow executes the first snippet in dir and expects that what it prints ends
// with the second.
func follow(t *testing.T, weft, dir string, pair []docs.Snippet) {
	t.Helper()
	require.Equal(t, "sh", pair[0].Lang, pair[0].Pos())
	require.Equal(t, "text", pair[1].Lang, pair[1].Pos())
	out, err := run(t, dir, []string{"WEFT=" + weft, "PWD=" + dir}, "sh", "-e", "-c", pair[0].Text)
	require.NoError(t, err, pair[0].Pos())
	require.True(t, strings.HasSuffix(out, pair[1].Text), "%s: printed\n%s", pair[0].Pos(), out)
}

func copyHost(t *testing.T, name string) string {
	t.Helper()
	dir := docs.Place(t, name)
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/host")))
	return dir
}
