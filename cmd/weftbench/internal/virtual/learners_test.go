// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

// coded is the side of a row with coding and no deferral.
func coded(t *testing.T, sides []Side) []Side {
	for _, s := range sides {
		if s.Coded && !s.Deferred {
			return []Side{s}
		}
	}
	require.Fail(t, "no side codes")
	return nil
}

// TestLearnersCostTheLeaderHeaders: a learner adds at most a thousandth to what the leader sends
// for large payloads, and voters complete payloads as early as without learners.
func TestLearnersCostTheLeaderHeaders(t *testing.T) {
	var alone cell
	var wait, stale time.Duration
	for _, learners := range []int{0, 5, 20} {
		b := Bytes{
			Sizes: []int{256 << 10}, Bytes: 8 << 20, MinCalls: 32, MaxCalls: 32, Learners: learners,
			Group: Group{Voters: []int{5}, Sides: coded(t, Sides()), Seed: 1, Progress: io.Discard},
		}
		cell, err := b.measure(b.Sides[0], 5, 0, b.Sizes[0])
		require.NoError(t, err)
		g := Gossip{
			Loads: []float64{0}, Time: time.Second, Learners: learners,
			Group: Group{Voters: []int{5}, Size: 64 << 10, Delay: time.Millisecond, Sides: coded(t, GossipSides()), Seed: 1, Progress: io.Discard},
		}
		row, err := g.measure(g.Sides[0], 5, 0)
		require.NoError(t, err)
		t.Logf("%2d learners: leader %.4f, all %.3f bytes a byte; voters wait %v, are behind by %v (p99)",
			learners, cell.Leader, cell.Network, row.WaitNS[2], row.StaleNS[2])
		if learners == 0 {
			alone, wait, stale = cell, lab.Quantile(row.Wait, 1), row.StaleNS[2]
			continue
		}
		require.LessOrEqual(t, cell.Leader, alone.Leader*(1+0.001*float64(learners)))
		require.InEpsilon(t, float64(4+learners), cell.Network, 0.1, "each gets each payload once")
		require.LessOrEqual(t, lab.Quantile(row.Wait, 1), wait)
		require.LessOrEqual(t, row.StaleNS[2], stale+stale/20)
	}
}
