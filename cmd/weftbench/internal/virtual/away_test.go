// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAway: with coded entries the loss of a follower is one short stall, and
// its return slows nobody down: the others bring it up to date, as fast as a
// link can.
func TestAway(t *testing.T) {
	cfg := Away{Away: time.Second, Group: Group{
		Voters: []int{3, 5}, Size: 64 << 10, Load: 0.5, Delay: 500 * time.Microsecond,
		Sides: []Side{FullCopies(), Ours()}, Seed: 1, Progress: io.Discard,
	}}
	rows, err := cfg.rows(t.Context())
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
		require.Greater(t, ours.Link, []float64{0.9, 0.75}[i/2]*Egress, "N=%d", ours.Voters)
		require.Less(t, ours.Caught, full.Caught*4/5, "N=%d", ours.Voters)
	}
}

// TestAwaySmall: the same holds for missed entries that are too small for coding, so that
// the leader sends all of them. Missed entries do not delay new entries, and do not take
// much longer for that.
func TestAwaySmall(t *testing.T) {
	for size, bounds := range map[int]struct{ p50, p99, takes float64 }{
		2 << 10: {1.7, 1.8, 1.5}, // plain: some of it is always just leaving, and what is new leaves first
		8 << 10: {1.1, 1.7, 0.8},
	} {
		cfg := Away{Away: time.Second, Group: Group{
			Voters: []int{3}, Size: size, Load: 0.5, Delay: 500 * time.Microsecond,
			Sides: []Side{FullCopies(), Ours()}, Seed: 1, Progress: io.Discard,
		}}
		rows, err := cfg.rows(t.Context())
		require.NoError(t, err)
		full, ours := rows[0], rows[1]
		require.Greater(t, ours.Missed, 10<<20)
		require.Less(t, ours.Back.P50.Seconds(), bounds.p50*ours.Before.P50.Seconds(), "%d bytes", size)
		require.Less(t, ours.Back.P99.Seconds(), bounds.p99*ours.Before.P99.Seconds(), "%d bytes", size)
		require.Less(t, ours.Back.P99, full.Back.P99/10, "%d bytes", size)
		require.Less(t, ours.Caught.Seconds(), bounds.takes*full.Caught.Seconds(), "%d bytes", size)
	}
}
