// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/ecraft/internal/rounds"
)

// TestAssignmentsAreEnough checks that, for any healthy members, every policy assigns units that
// can commit, and at most D units to a follower.
func TestAssignmentsAreEnough(t *testing.T) {
	for n := 3; n <= 9; n++ {
		for dead := uint(0); dead < 1<<(n-1); dead++ {
			r := rounds.Of(n, 60_000, dead)
			r.Now = time.Minute
			policies := []ecraft.Policy{ecraft.Full{}, ecraft.Levelled{}, adaptive.New(adaptive.Options{}), joined(r)}
			for level := 1; level <= ecraft.Levels(n); level++ {
				policies = append(policies, ecraft.Fixed(level))
			}
			for _, p := range policies {
				for index := range uint64(3) {
					r.Index = index
					units := make([]int, n-1)
					plan := p.Assign(r, units)
					require.True(t, ecraft.Enough(r, units), "%T N=%d dead %b: %v", p, n, dead, units)
					require.LessOrEqual(t, plan.Level, ecraft.Levels(n))
					for _, u := range units {
						require.LessOrEqual(t, u, r.Layout.D)
					}
				}
			}
		}
	}
}

// joined returns an adaptive policy that knows the followers of a round.
func joined(r *ecraft.Round) *adaptive.Policy {
	a := adaptive.New(adaptive.Options{})
	for _, f := range r.Followers {
		a.Joined(f.ID, true, 0)
	}
	return a
}

// TestLevelledIsTheLeast checks that with any f' failed followers the leader sends
// (healthy-1)/(healthy-f) of the payload, the least that can commit.
func TestLevelledIsTheLeast(t *testing.T) {
	for _, n := range []int{3, 5, 7, 9} {
		f := n / 2
		for dead := uint(0); dead < 1<<(n-1); dead++ {
			failed := bits.OnesCount(dead)
			if failed > f {
				continue
			}
			r := rounds.Of(n, 1<<20, dead)
			units, sum := make([]int, n-1), 0
			ecraft.Levelled{}.Assign(r, units)
			for _, u := range units {
				sum += u
			}
			healthy := n - failed
			want := float64(healthy-1) / float64(healthy-f)
			require.InEpsilon(t, want, float64(sum)/float64(r.Layout.D), 0.02, "N=%d %d failed", n, failed)
		}
	}
}

func TestSmallGroupsAreFullCopies(t *testing.T) {
	for _, n := range []int{1, 2} {
		r := rounds.Of(n, 1<<20, 0)
		for _, p := range []ecraft.Policy{ecraft.Full{}, ecraft.Levelled{}, ecraft.Fixed(2), joined(r)} {
			units := make([]int, n-1)
			require.Equal(t, 1, p.Assign(r, units).Level)
			require.True(t, ecraft.Enough(r, units))
		}
	}
}

// TestLearnersLeaveAssignmentsAlone: whatever a policy has seen of learners, voters get what they
// would get without any.
func TestLearnersLeaveAssignmentsAlone(t *testing.T) {
	r := rounds.Of(5, 60_000, 0)
	r.Now = time.Minute
	alone, beside := joined(r), joined(r)
	for i := range uint64(3) {
		id := 10 + i
		beside.Joined(id, false, 0)
		beside.HeartbeatSent(id, time.Second)
		beside.HeartbeatAnswered(id, 3*time.Second)
		beside.Acked(id, 7, 0, 4*time.Second)
	}
	want, units := make([]int, 4), make([]int, 4)
	plan := alone.Assign(r, want)
	require.Equal(t, plan, beside.Assign(r, units))
	require.Equal(t, want, units)
	require.Positive(t, beside.Room(10, 1, 0), "a learner catches up at a pace of its own")
	beside.Left(10)
	beside.Joined(10, true, time.Minute)
	require.Positive(t, beside.Room(10, 1, 0), "with a vote it is a follower like the others")
}

// TestFullIsPlain: full copies on purpose go to learners, too; full copies for want of followers do not.
func TestFullIsPlain(t *testing.T) {
	for dead := range uint(16) {
		r := rounds.Of(5, 60_000, dead)
		units := make([]int, 4)
		require.True(t, ecraft.Full{}.Assign(r, units).Plain)
		for _, p := range []ecraft.Policy{ecraft.Fixed(1), ecraft.Levelled{}, adaptive.New(adaptive.Options{}), joined(r)} {
			require.False(t, p.Assign(r, units).Plain, "%T, dead %b", p, dead)
		}
	}
}

func TestHedge(t *testing.T) {
	require.Zero(t, ecraft.HedgeAfter(ecraft.Plan{}), "nothing predicted, nothing late")
	require.False(t, ecraft.HedgeWaived(ecraft.Plan{}, time.Hour, false))
	require.Equal(t, time.Millisecond, ecraft.HedgeAfter(ecraft.Plan{Predicted: 10 * time.Microsecond}))
	p := ecraft.Plan{Predicted: 2 * time.Millisecond}
	require.Equal(t, 12*time.Millisecond, ecraft.HedgeAfter(p))
	require.False(t, ecraft.HedgeWaived(p, 50*time.Millisecond, false))
	require.True(t, ecraft.HedgeWaived(p, 51*time.Millisecond, false))
	p.Predicted = 10 * time.Millisecond
	require.False(t, ecraft.HedgeWaived(p, 100*time.Millisecond, false))
	require.True(t, ecraft.HedgeWaived(p, 101*time.Millisecond, false))
	require.False(t, ecraft.HedgeWaived(p, 400*time.Millisecond, true))
	require.True(t, ecraft.HedgeWaived(p, 401*time.Millisecond, true))
}
