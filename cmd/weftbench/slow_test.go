// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/slowbench"
)

// Each fault of its leader is felt by clients of the minimal loop, which does nothing about any.
func TestSlow(t *testing.T) {
	out, progress, err := weftbench(t, "slow", "--kvdemo", buildKvdemo(t), "--data", t.TempDir(), "--sides", "loop", "--who", "leader", "--nodes", "3",
		"--rounds", "1", "--tick", "20ms", "--healthy", "300ms", "--for", "1s", "--sync", "2ms", "--link", "2ms", "--json")
	require.NoError(t, err, progress)
	var runs []slowbench.Run
	require.NoError(t, json.Unmarshal([]byte(out), &runs))
	require.Len(t, runs, len(slowbench.Names()))
	for _, r := range runs {
		require.Positive(t, r.PerSecond)
		require.True(t, r.Gap > 0.5 || r.Share < 0.8 || r.P99 > 2, "%s does not bite: %s", r.Fault, progress)
	}
}
