// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/outagebench"
)

// A follower that was away is brought up to date by the leader with full
// copies, and by the other followers with coding.
func TestOutage(t *testing.T) {
	kvdemo := buildKvdemo(t)
	var rows []outagebench.Row
	for attempt := range 3 {
		out, progress, err := weftbench(t, "outage", "--kvdemo", kvdemo, "--data", t.TempDir(), "--nodes", "3", "--egress", "4000000",
			"--size", "64KiB", "--load", "0.3", "--away", "4s", "--before", "1s", "--rounds", "1", "--json")
		if err == nil {
			require.NoError(t, json.Unmarshal([]byte(out), &rows))
		}
		if err == nil && !slices.ContainsFunc(rows, someFailed) {
			break
		}
		// Where other work keeps a disk for longer than an election timeout, the leader hands over.
		require.Less(t, attempt, 2, "%v\n%s", err, progress)
	}
	require.Len(t, rows, 2)
	for _, r := range rows {
		require.Positive(t, r.Missed)
	}
	require.Greater(t, rows[0].Sent, 1.9, "coding %s", rows[0].Side)
	require.Less(t, rows[1].Sent, 0.9*rows[0].Sent, "coding %s", rows[1].Side)
}

func someFailed(r outagebench.Row) bool { return r.Before.Failed+r.Away.Failed+r.Back.Failed > 0 }
