// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/raft"
)

// TestFailoverIsNoSlowerWithLeases kills 100 leaders in groups of each size, with leases
// off and on. Messages of leases share cards with others, so a gap may differ by a round
// trip, and by a tick where votes then arrive in another order.
func TestFailoverIsNoSlowerWithLeases(t *testing.T) {
	cfg := Failover{
		Seeds: 100, Leases: true, Group: Group{Voters: []int{3, 5, 7}, Size: 4 << 10, Load: 0.01, Delay: time.Millisecond, Seed: 1, Sides: LeaseSides(), Progress: t.Output()},
	}
	rows, err := cfg.rows(t.Context())
	require.NoError(t, err)
	var off lossRow
	for _, r := range rows {
		require.Len(t, r.Gaps, cfg.Seeds)
		if r.Side == cfg.Sides[0].Name {
			off = r
		}
		require.Zero(t, r.heldBack(off), "N=%d, %s: elections later than with leases off, after the same last words", r.Voters, r.Side)
		alike := 0
		for i, g := range r.Gaps {
			require.Len(t, g.Heard, r.Voters-1)
			if g.heardAs(off.Gaps[i]) {
				alike++
			}
		}
		require.Greater(t, alike, cfg.Seeds/2, "N=%d, %s: seeds at which all survivors heard the same last words", r.Voters, r.Side)
		for q, bound := range map[float64]time.Duration{0.5: r.RTT, 0.99: r.RTT + tick} {
			on, without := lab.Quantile(r.each(anew), q), lab.Quantile(off.each(anew), q)
			t.Logf("N=%d, %s: %v of gaps are at most %v; with leases off %v", r.Voters, r.Side, q, on, without)
			require.LessOrEqual(t, on, without+bound, "N=%d, %s", r.Voters, r.Side)
		}
		if r.Side == cfg.Sides[3].Name {
			// Messages of leases restart no election timeout. What responders cost comes with
			// writes that commit later, and here there are none.
			for i, d := range r.more(off, anew) {
				require.Less(t, d.Abs(), sameWord, "N=%d, %s, seed %d", r.Voters, r.Side, r.Gaps[i].Seed)
			}
		}
	}
}

// If grants bind voters for longer than an election timeout, elections are late, and the table shows it.
func TestPromisesBeyondTheElectionTimeoutAreSeen(t *testing.T) {
	sides := LeaseSides()[:2]
	on := sides[1].Configure
	sides[1].Configure = func(c *raft.Config) {
		on(c)
		c.Leases.Tick *= 4 // grants last as if election timeouts were four times as long
		c.Leases.Lease *= 4
		c.Leases.Fail *= 4
	}
	cfg := Failover{
		Seeds: 20, Leases: true, Group: Group{Voters: []int{3}, Size: 4 << 10, Load: 0.01, Delay: time.Millisecond, Seed: 1, Sides: sides, Progress: t.Output()},
	}
	rows, err := cfg.rows(t.Context())
	require.NoError(t, err)
	require.Greater(t, lab.Quantile(rows[1].more(rows[0], anew), 0.5), 10*tick)
	require.Greater(t, rows[1].heldBack(rows[0]), cfg.Seeds/2)
}

// The bounds of a quantile close in on it as times become more.
func TestConfidenceOfAQuantile(t *testing.T) {
	times := func(n int) (d []time.Duration) {
		for i := range n {
			d = append(d, time.Duration(i+1)*time.Millisecond)
		}
		return d
	}
	require.Equal(t, "196.000 / 200.000", within(times(200), 0.99))
	require.Equal(t, "1972.000 / 1989.000", within(times(2000), 0.99))
}
