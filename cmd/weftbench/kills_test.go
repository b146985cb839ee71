// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/killsbench"
)

// Writes go on after a leader was killed, with leases off and on, and after each failure of a
// responder, which holds them up once. The bounds of times are for a machine that does much
// besides.
func TestKills(t *testing.T) {
	const patient = 20 * time.Second
	out, progress, err := weftbench(t, "kills", "--kvdemo", buildKvdemo(t), "--data", t.TempDir(), "--kills", "1", "--reads", "1", "--faults", "1", "--json")
	require.NoError(t, err, progress)
	var r killsbench.Results
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Gaps, 2)
	for _, g := range r.Gaps {
		require.Positive(t, g.Gap, g.Side)
		require.Less(t, g.Gap, patient, g.Side)
	}
	require.Len(t, r.Reads, 2*2*3, "sides, nodes that survive, policies")
	for _, x := range r.Reads {
		require.Greater(t, x.Begun, 20)
		require.NotEmpty(t, x.Took, "%s, %s", x.Side, x.Policy)
	}
	require.Len(t, r.Faults, 7)
	holds := 0
	for _, f := range r.Faults {
		most := 1
		if f.Failure == "faltering" {
			most = 2 // it may run for longer than it should, and be named again
		}
		require.LessOrEqual(t, f.Holds, most, "%s: how often writes waited for the responder", f.Failure)
		holds += f.Holds
		require.Less(t, f.Held, patient, f.Failure)
		require.Positive(t, f.Reads, f.Failure)
	}
	require.Positive(t, holds, "no write waited for a responder that had failed")
	_, _, err = weftbench(t, "kills", "--nodes", "2")
	require.ErrorContains(t, err, "--nodes: 2, want 3 to 9")
}
