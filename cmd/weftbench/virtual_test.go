// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of virtual time print tables and JSON, put their section into a
// document, and refuse impossible settings.
func TestVirtualTime(t *testing.T) {
	verbs := map[string][]string{
		"bytes":    {"--voters", "3", "--sizes", "4096", "--max", "50"},
		"gossip":   {"--voters", "3", "--loads", "0,0.5", "--time", "100ms"},
		"failover": {"--voters", "3", "--seeds", "2"},
		"away":     {"--voters", "3", "--away", "1s"},
	}
	doc := filepath.Join(t.TempDir(), "doc.md")
	for verb, args := range verbs {
		args = append([]string{"virtual", verb}, args...)
		text, _, err := weftbench(t, args...)
		require.NoError(t, err)
		require.Contains(t, text, "full")

		out, _, err := weftbench(t, append(args, "--json")...)
		require.NoError(t, err)
		var rows []map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &rows))
		require.NotEmpty(t, rows)

		out, _, err = weftbench(t, append(args, "--out", doc)...)
		require.NoError(t, err)
		require.Empty(t, out)
		written, err := os.ReadFile(doc)
		require.NoError(t, err)
		require.Contains(t, string(written), "<!-- begin: weftbench virtual "+verb+" -->")
	}
	for _, bad := range []struct {
		args []string
		want string
	}{
		{[]string{"virtual", "bytes", "--voters", "1"}, "--voters: 1, want 3 to 15"},
		{[]string{"virtual", "gossip", "--loads", "-1"}, "--loads: -1, want 0 to 4"},
		{[]string{"virtual", "failover", "--seeds", "0", "--size", "7"}, "--seeds: 0, want 1 to 1048576"},
		{[]string{"virtual", "failover", "--load", "NaN"}, "--load: NaN, want 0.01 to 4"},
		{[]string{"virtual", "failover", "--load", "1e9"}, "--load: 1e+09, want 0.01 to 4"},
		{[]string{"virtual", "gossip", "--size", "99999999999"}, "--size: 99999999999, want 9 to 67108864"},
		{[]string{"virtual", "away", "--delay", "soon"}, `--delay: "soon", want a duration`},
		{[]string{"virtual", "bytes", "--max", "0"}, "--max: 0, want 1 to 1073741824"},
		{[]string{"virtual", "bytes", "--sizes", "7"}, "--sizes: 7, want 8 to 67108864"},
		{[]string{"virtual", "bytes", "--out", "/nonexistent/x"}, "--out: stat /nonexistent"},
	} {
		_, _, err := weftbench(t, bad.args...)
		require.ErrorContains(t, err, bad.want)
	}
}

// The comparisons of leases off and on, and of failures of responders, print every row.
func TestLeasesThatFail(t *testing.T) {
	text, progress, err := weftbench(t, "virtual", "failover", "--leases", "--voters", "3", "--seeds", "2", "--size", "4096")
	require.NoError(t, err, progress)
	for _, side := range []string{"leases off", "leases", "leases, notes"} {
		require.Contains(t, text, side)
	}
	text, progress, err = weftbench(t, "responders", "--voters", "3", "--seeds", "1")
	require.NoError(t, err, progress)
	for _, failure := range []string{"dead", "stopped", "slow", "deaf", "mute", "stuck disk"} {
		require.Contains(t, text, failure)
	}
}

// The comparisons of reads print tables that name every policy.
func TestReads(t *testing.T) {
	for _, args := range [][]string{
		{"reads", "--quick", "--time", "600ms", "--clients", "3"},
		{"scale-reads", "--quick", "--time", "40ms"},
	} {
		text, progress, err := weftbench(t, args...)
		require.NoError(t, err, progress)
		require.Contains(t, text, "In short:")
		for _, policy := range []string{"ReadIndex", "leader lease", "quorum read", "roster", "roster, notes"} {
			require.Contains(t, text, policy)
		}
	}
	for _, bad := range []struct {
		args []string
		want string
	}{
		{[]string{"reads", "--writes", "1.5"}, "--writes: 1.5, want 0 to 1"},
		{[]string{"reads", "--keys", "0"}, "--keys: 0, want 1 to 1048576"},
		{[]string{"scale-reads", "--nodes", "41"}, "--nodes: 41, want 1 to 40"},
		{[]string{"responders", "--fail", "1ms"}, "--fail: 1ms, want 10ms to 1m0s"},
	} {
		_, _, err := weftbench(t, bad.args...)
		require.ErrorContains(t, err, bad.want)
	}
}
