// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/outagebench"
)

// A follower that was away is brought up to date by the leader with full
// copies, and by the other followers with coding.
func TestOutage(t *testing.T) {
	out, progress, err := weftbench(t, "outage", "--kvdemo", buildKvdemo(t), "--data", t.TempDir(), "--nodes", "3", "--egress", "4000000",
		"--size", "64KiB", "--load", "0.3", "--away", "4s", "--before", "1s", "--rounds", "1", "--json")
	require.NoError(t, err, progress)
	var rows []outagebench.Row
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 2)
	for _, r := range rows {
		require.Positive(t, r.Missed)
		require.Zero(t, r.Before.Failed+r.Away.Failed+r.Back.Failed)
	}
	require.Greater(t, rows[0].Sent, 1.9, "coding %s", rows[0].Side)
	require.Less(t, rows[1].Sent, 0.9*rows[0].Sent, "coding %s", rows[1].Side)
}
