// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchMeasuresEachRowOnce runs a small benchmark over the relay, which every machine allows:
// first stopped before its first row, then continued.
func TestBenchMeasuresEachRowOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds etcd, and runs clusters of it")
	}
	dir := t.TempDir()
	rows := filepath.Join(dir, "rows")
	var report bytes.Buffer
	run := func(more ...string) error {
		report.Reset()
		cmd := command()
		cmd.SetOut(&report)
		cmd.SetArgs(append([]string{"bench", "--members=3", "--links=0", "--sizes=1024,8192", "--clients=2", "--rounds=1",
			"--warm=100ms", "--time=100ms", "--network=relay", "--rows=" + rows}, more...))
		return cmd.ExecuteContext(t.Context())
	}
	require.ErrorContains(t, run("--stop-after=1ns"), "rows are missing; run this again to go on")
	require.NoError(t, run())
	require.Contains(t, report.String(), "### 3 members, links without a bound")
	row := regexp.MustCompile(`(?m)^ *[18] KB +2 `)
	require.Len(t, row.FindAllString(report.String(), -1), 2, report.String())
	before, err := os.ReadFile(rows)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(before), "\n"), "circumstances and two rows")

	require.NoError(t, run("--stop-after=1ns"), "nothing is left to measure")
	after, err := os.ReadFile(rows)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.ErrorContains(t, run("--rounds=2"), "measured under other circumstances")
}

func TestBenchNamesMistakes(t *testing.T) {
	for says, args := range map[string][]string{
		`"100000000,fast" for "--links"`:         {"--links=100000000,fast"},
		"--members: [0], want numbers of 1 to 9": {"--members=0"},
		"Kind is \"wire\"":                       {"--network=wire"},
		"--out: 4 rounds, want 5 or more":        {"--rounds=4", "--out=report.md"},
		"--out: 1 rounds, want 5 or more":        {"--quick", "--out=report.md"},
	} {
		cmd := command()
		cmd.SetArgs(append([]string{"bench"}, args...))
		require.ErrorContains(t, cmd.ExecuteContext(t.Context()), says)
	}
}
