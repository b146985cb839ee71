// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"flag"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAssignmentsAreEnough: whoever is healthy, every policy leaves what can
// commit, and no more than D units for anyone.
func TestAssignmentsAreEnough(t *testing.T) {
	for n := 3; n <= 9; n++ {
		for dead := uint(0); dead < 1<<(n-1); dead++ {
			r := roundOf(n, 60_000, dead)
			r.Now = time.Minute
			policies := []Policy{Full{}, Levelled{}, NewAdaptive(AdaptiveOptions{}), joined(r)}
			for level := 1; level <= Levels(n); level++ {
				policies = append(policies, Fixed(level))
			}
			for _, p := range policies {
				for index := range uint64(3) {
					r.Index = index
					units := make([]int, n-1)
					plan := p.Assign(r, units)
					require.True(t, Enough(r, units), "%T N=%d dead %b: %v", p, n, dead, units)
					require.LessOrEqual(t, plan.Level, Levels(n))
					for _, u := range units {
						require.LessOrEqual(t, u, r.Layout.D)
					}
				}
			}
		}
	}
}

// joined returns an adaptive policy that knows the followers of a round.
func joined(r *Round) *Adaptive {
	a := NewAdaptive(AdaptiveOptions{})
	for _, f := range r.Followers {
		a.Joined(f.ID, 0)
	}
	return a
}

// TestLevelledIsTheLeast: with any f' failed the leader sends
// (healthy-1)/(healthy-f) of the payload, the least that can commit.
func TestLevelledIsTheLeast(t *testing.T) {
	for _, n := range []int{3, 5, 7, 9} {
		f := n / 2
		for dead := uint(0); dead < 1<<(n-1); dead++ {
			failed := bits.OnesCount(dead)
			if failed > f {
				continue
			}
			r := roundOf(n, 1<<20, dead)
			units, sum := make([]int, n-1), 0
			Levelled{}.Assign(r, units)
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
		r := roundOf(n, 1<<20, 0)
		for _, p := range []Policy{Full{}, Levelled{}, Fixed(2), joined(r)} {
			units := make([]int, n-1)
			require.Equal(t, 1, p.Assign(r, units).Level)
			require.True(t, Enough(r, units))
		}
	}
}

// TestLearnersAreSentTheSame, and count for nothing.
func TestLearnersAreSentTheSame(t *testing.T) {
	r := roundOf(5, 60_000, 0)
	for i := range 3 {
		r.Followers = append(r.Followers, Member{ID: uint64(10 + i), Healthy: true})
	}
	r.Layout = NewLayout(5, len(r.Followers))
	for _, p := range []Policy{Fixed(3), Levelled{}, joined(r)} {
		units := make([]int, len(r.Followers))
		p.Assign(r, units)
		require.True(t, Enough(r, units))
		require.Equal(t, units[0], units[5])
		for i := range 4 {
			units[i] = 0
		}
		require.False(t, Enough(r, units), "learners alone commit nothing")
	}
}

func TestHedge(t *testing.T) {
	require.Zero(t, HedgeAfter(Plan{}), "nothing predicted, nothing late")
	require.False(t, HedgeWaived(Plan{}, time.Hour, false))
	require.Equal(t, time.Millisecond, HedgeAfter(Plan{Predicted: 10 * time.Microsecond}))
	p := Plan{Predicted: 2 * time.Millisecond}
	require.Equal(t, 12*time.Millisecond, HedgeAfter(p))
	require.False(t, HedgeWaived(p, 50*time.Millisecond, false))
	require.True(t, HedgeWaived(p, 51*time.Millisecond, false))
	p.Predicted = 10 * time.Millisecond
	require.False(t, HedgeWaived(p, 100*time.Millisecond, false))
	require.True(t, HedgeWaived(p, 101*time.Millisecond, false))
	require.False(t, HedgeWaived(p, 400*time.Millisecond, true))
	require.True(t, HedgeWaived(p, 401*time.Millisecond, true))
}

// TestAdaptiveBearsAnything: calls in any order, with members that nobody
// knows, times that stand still, answers to what was never sent. Whatever comes,
// assignments are enough, queues stay within what is in flight, nothing is NaN.
func TestAdaptiveBearsAnything(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		require.NoError(t, f.Value.Set("1")) // the same each time, unless another is asked for
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		a := NewAdaptive(AdaptiveOptions{})
		now := time.Duration(0)
		id := rapid.Uint64Range(2, uint64(n)+1)
		index := rapid.Uint64Range(0, 600)
		bytes := rapid.IntRange(0, 8<<20)
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now += time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "ns"))
			},
			"join":     func(t *rapid.T) { a.Joined(id.Draw(t, "id"), now) },
			"leave":    func(t *rapid.T) { a.Left(id.Draw(t, "id")) },
			"reset":    func(*rapid.T) { a.Reset(now) },
			"proposed": func(t *rapid.T) { a.Proposed(index.Draw(t, "index"), bytes.Draw(t, "bytes"), now) },
			"sent": func(t *rapid.T) {
				a.Sent(id.Draw(t, "id"), index.Draw(t, "index"), bytes.Draw(t, "bytes"), now)
			},
			"acked": func(t *rapid.T) {
				held := time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "held"))
				a.Acked(id.Draw(t, "id"), index.Draw(t, "index"), held, now)
			},
			"committed": func(t *rapid.T) { a.Committed(index.Draw(t, "index")) },
			"beat":      func(t *rapid.T) { a.HeartbeatSent(id.Draw(t, "id"), now) },
			"beaten":    func(t *rapid.T) { a.HeartbeatAnswered(id.Draw(t, "id"), now) },
			"hint": func(t *rapid.T) {
				a.QueueHint(id.Draw(t, "id"), rapid.IntRange(-1, 1<<30).Draw(t, "queued"), rapid.Float64Range(0, 1e12).Draw(t, "rate"), now)
			},
			"": func(t *rapid.T) {
				r := roundOf(n, bytes.Draw(t, "bytes"), uint(rapid.IntRange(0, 1<<n).Draw(t, "dead")))
				r.Now = now
				units := make([]int, n-1)
				plan := a.Assign(r, units)
				require.True(t, Enough(r, units), "%+v: %v", r, units)
				require.GreaterOrEqual(t, plan.Predicted, time.Duration(0))
				for _, l := range a.links {
					require.False(t, l.queue < 0 || l.queue > l.flying, "queue %v of %v", l.queue, l.flying)
					require.False(t, l.cost != l.cost || l.cost <= 0 || l.base != l.base, "cost %v base %v", l.cost, l.base)
				}
			},
		})
	})
}
