// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package awaybench

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

// TestAway: with coded entries the loss of a follower is one short stall, and
// its return slows nobody down: the others bring it up to date, as fast as a
// link can.
func TestAway(t *testing.T) {
	rows, err := Run(t.Context(), Config{
		Voters: []int{3, 5}, Size: 64 << 10, Load: 0.5, Away: time.Second, Delay: 500 * time.Microsecond,
		Sides: []virtual.Side{virtual.FullCopies(), virtual.Ours()}, Seed: 1, Progress: io.Discard,
	})
	require.NoError(t, err)
	require.Len(t, rows, 4)
	for i := 0; i < len(rows); i += 2 {
		full, ours := rows[i], rows[i+1]
		require.Greater(t, ours.Missed, 10<<20)
		require.Less(t, ours.Lost.Max, 50*time.Millisecond, "N=%d", ours.Voters)
		require.Less(t, ours.Back.P50, ours.Before.P50*11/10, "N=%d", ours.Voters)
		require.Less(t, ours.Back.Max, full.Back.Max/4, "N=%d", ours.Voters)
		require.Less(t, ours.Back.P99, ours.Before.P99*11/10, "N=%d", ours.Voters)
		require.Less(t, ours.Sent, full.Sent/2, "N=%d", ours.Voters)
		require.Greater(t, ours.Link, []float64{0.9, 0.75}[i/2]*virtual.Egress, "N=%d", ours.Voters)
		require.Less(t, ours.Caught, full.Caught*4/5, "N=%d", ours.Voters)
	}
}
