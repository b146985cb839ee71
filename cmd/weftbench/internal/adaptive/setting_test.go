// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
)

// TestSidesOfPapersAreInOrder checks what the papers found: full copies are as good as any for small
// puts, and behind coded puts for large ones.
func TestSidesOfPapersAreInOrder(t *testing.T) {
	s := Setting{
		Network: Uniform(5, gbit, 4*ms, 200*us), Clients: 15, Trip: 8 * ms, Gets: 0.5, Spread: 0.1,
		Warm: 500 * ms, Time: time.Second, Seed: 1,
	}
	rate := func(side Side, size int) float64 {
		s.Sizes = []int{size}
		out, err := s.Run(side, false)
		require.NoError(t, err)
		t.Logf("%s %d: %+v", side.Name, size, out)
		return out.PerSecond
	}
	weft, full, rs, published := Weft(), FullCopies(), Of("RSPaxos", papers.RSPaxos{}), Published()
	require.InEpsilon(t, rate(full, 8), rate(weft, 8), 0.03)
	require.InEpsilon(t, rate(rs, 128<<10), rate(weft, 128<<10), 0.05)
	require.Greater(t, rate(weft, 128<<10), 1.5*rate(full, 128<<10))
	require.Greater(t, rate(published, 128<<10), 1.5*rate(full, 128<<10))

	s.Failed = 2
	out, err := s.Run(rs, false)
	require.NoError(t, err)
	require.True(t, out.Stuck, "RSPaxos at N = 5 survives one failure")
}

// TestModelCutsPayloadsAsTheCore has a level that does not divide the group's D.
func TestModelCutsPayloadsAsTheCore(t *testing.T) {
	s := Setting{Network: Uniform(9, gbit, 100*us, 0), Sizes: []int{1 << 20}, Clients: 1, Time: 200 * ms, Seed: 1}
	out, err := s.Run(fixedLevel(ecraft.Levels(9)), false)
	require.NoError(t, err)
	require.InDelta(t, 8./5, out.Sent, 0.01, "each of 8 followers gets a fifth")
}
