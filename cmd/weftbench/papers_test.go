// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPapersListsRunsAndRefuses(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"papers"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("--list", "--figure", "flexraft")
	require.NoError(t, err)
	require.Contains(t, out, "flexraft/10b")
	out, err = run("--figure", "flexraft/13")
	require.NoError(t, err)
	require.Contains(t, out, "published: added to a request and an answer: 16 B and 8 B")
	kvdemo, err := built()
	require.NoError(t, err)
	for figure, row := range map[string]string{"flexraft/9": `5 +1 +64 KB .* → .*x`, "crossword/8": `two lag .* → .*x`} {
		out, err = run("--net", "real", "--quick", "--figure", figure, "--kvdemo", kvdemo, "--data", t.TempDir(), "--zookeeper", "moon")
		require.NoError(t, err, out)
		require.Regexp(t, row, out)
	}
	for want, args := range map[string][]string{
		"no row": {"--figure", "moon"},
		"--net":  {"--net", "moon"},
		"brings": {"--net", "real", "--figure", "bodega/16", "--zookeeper", "moon"},
		"--out":  {"--out", "docs", "--list"},
	} {
		_, err := run(args...)
		require.ErrorContains(t, err, want)
	}
}
