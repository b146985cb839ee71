// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/tpcc"
	"github.com/weftraft/weft/internal/lab"
)

// A short form of the row, with one of five processes killed.
func TestTransactionsOfProcessesHoldTheConditions(t *testing.T) {
	kvdemo := buildKvdemo(t)
	out, progress, err := weftbench(t, "papers", "--net", "real", "--quick", "--figure", "crossword/14", "--kvdemo", kvdemo, "--data", t.TempDir())
	require.NoError(t, err, progress)
	require.Regexp(t, `text 8x, 100 Mbit/s, all nodes lead, 1 failed( +\d+){3} +\d.\d\dx +\d.\d\dx`, out)
	require.Contains(t, out, "on the state of each replica (60 in all)")
}

func TestPlantedBugsOfProcessesBreakConditions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for bug := range tpcc.Bug(3) {
		t.Run(fmt.Sprint("bug ", bug+1), func(t *testing.T) {
			t.Parallel()
			dir, s := t.TempDir(), tpcc.Setting{Plan: tpcc.Plan{
				Nodes: 5, Ranges: 4, PerRange: 1, Terminals: 12, Customers: 10, Items: 1000, Text: 1, Rate: 1e9 / 8,
				Warm: 100 * time.Millisecond, Seed: 1, Bug: bug + 1,
			}}
			var err error
			for s.Plan.Time = 300 * time.Millisecond; err == nil && s.Plan.Time < 30*time.Second; s.Plan.Time *= 3 { // a busy machine has few transactions
				_, err = lab.Again(func() (tpcc.Outcome, error) { return tpcc.RunProcesses(t.Context(), self, dir, s) })
			}
			require.ErrorContains(t, err, "not consistent")
		})
	}
}
