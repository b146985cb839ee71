// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/codingbench"
)

// Through a narrow card, real nodes code, and the leader sends less.
func TestCoding(t *testing.T) {
	kvdemo := buildKvdemo(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	out, progress, err := weftbench(t, "coding", "--kvdemo", kvdemo, "--data", t.TempDir(), "--nodes", "3", "--egress", "2500000",
		"--sizes", "64KiB", "--clients", "8", "--rounds", "1", "--time", "2s", "--json")
	require.NoError(t, err, progress)
	var cells []codingbench.Cell
	require.NoError(t, json.Unmarshal([]byte(out), &cells))
	require.Len(t, cells, 2)
	full, coded := cells[0], cells[1]
	require.Zero(t, full.Failed+coded.Failed, progress)
	perByte := func(c codingbench.Cell) float64 { return float64(c.LeaderBytes) / float64(c.Calls) / float64(c.Size) }
	require.InDelta(t, 2, perByte(full), 0.1)
	require.Less(t, perByte(coded), 1.5)
	require.Positive(t, coded.LeaderCPU)
	require.Less(t, coded.LeaderCPU, coded.AllCPU)
}
