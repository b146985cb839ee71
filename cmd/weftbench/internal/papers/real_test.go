// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/internal/lab"
)

func TestRoundsOfATrace(t *testing.T) {
	require.Equal(t, lab.Rounds{2.5, 10}, byRound([]float64{1, 2, 3, 4, 10, 10, 10, 10}))
	require.Empty(t, byRound(nil))
}

// TestSimulationRunsOnAsProcessesDo finds a simulation that shows its first seconds only, in which the policy tries its forms.
func TestSimulationRunsOnAsProcessesDo(t *testing.T) {
	b := &Bench{Seed: 1, Rounds: lab.LeastRounds}
	rounds, err := b.simulated(rate, servers{5, 0}, 256<<10, adaptive.Weft())
	require.NoError(t, err)
	require.Len(t, rounds, b.Rounds)
	require.Greater(t, rounds.Median(), 1.2*rounds[0])
}
