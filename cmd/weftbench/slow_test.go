// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/slowbench"
)

// Each fault of its leader is run against the minimal loop, which does nothing about any. Clients of a loop whose
// leader falls silent feel that on any machine. How much slower a slow leader is depends on the machine's other work;
// that its faults happen is for tests of stuck and lab.
func TestSlow(t *testing.T) {
	out, progress, err := weftbench(t, "slow", "--kvdemo", buildKvdemo(t), "--data", t.TempDir(), "--sides", "loop", "--who", "leader", "--nodes", "3",
		"--rounds", "1", "--tick", "20ms", "--healthy", "300ms", "--for", "1s", "--sync", "2ms", "--link", "2ms", "--json")
	require.NoError(t, err, progress)
	var runs []slowbench.Run
	require.NoError(t, json.Unmarshal([]byte(out), &runs))
	require.Len(t, runs, len(slowbench.Names()))
	silent := 0
	for _, r := range runs {
		require.Positive(t, r.PerSecond)
		if slices.Contains([]string{"dead", "hang", "mute"}, r.Fault) {
			silent++
			require.Greater(t, r.Gap, 0.5, "%s does not bite: %s", r.Fault, progress)
		}
	}
	require.Equal(t, 3, silent)
}
