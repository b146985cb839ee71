// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// newPuller returns the puller of node 2 in a group of nodes 1 to 6.
func newPuller(o PullerOptions) *Puller {
	p := NewPuller(2, o)
	p.SetMembers([]uint64{1, 2, 3, 4, 5, 6})
	return p
}

// lacking returns entries of node 1 at level 3, of which node 2 has its own
// units: 4 are lacking.
func lacking(count int) (list []Lacking) {
	h := coded(6, 2, 2, 2, 2, 2)
	for i := range count {
		list = append(list, Lacking{ID: at(uint64(i + 1)), Header: h, Need: 4, OwnHeld: 2, First: []uint8{2, 0, 0, 0, 0}})
	}
	return list
}

// asked returns, by peer in order, the needs and offsets that are asked for.
func asked(asks []Ask) (list [][4]int) {
	for _, a := range asks {
		for _, w := range a.Wants {
			list = append(list, [4]int{int(a.To), w.Need, w.OwnHeld, w.Theirs})
		}
	}
	return list
}

// Pushes get their time. Then shares are asked of ring successors, such that
// complete ones would send different units.
func TestPullSharesAmongSuccessors(t *testing.T) {
	p := newPuller(PullerOptions{})
	missing := lacking(1)
	require.Empty(t, p.Plan(0, missing, 1, nil))
	require.Empty(t, p.Plan(1, missing, 1, nil))
	require.Equal(t, [][4]int{{3, 2, 2, 0}, {4, 2, 4, 0}}, asked(p.Plan(2, missing, 1, nil)))
	require.Equal(t, 4*8, p.onOrder)
	require.Empty(t, p.Plan(3, missing, 1, nil), "the answers are awaited")
	// One answers, the other does not.
	p.Answered(3, at(1))
	missing[0].Need, missing[0].First = 2, []uint8{2, 2, 0, 0, 0}
	require.Empty(t, p.Plan(3, missing, 1, nil))
	require.Equal(t, [][4]int{{5, 2, 2, 0}}, asked(p.Plan(4, missing, 1, nil)))
	p.Answered(5, at(1))
	require.Empty(t, p.Plan(4, nil, 1, nil))
	require.Zero(t, p.onOrder)
}

// Where pushes are slow, as on links that are full, they are waited for: within a bound, and no longer once
// answers bring what pushes do not.
func TestPatienceFollowsPushes(t *testing.T) {
	p, now := newPuller(PullerOptions{}), 0
	// first returns after how many ticks an entry is asked for that is lacking for some; or -1.
	first := func(lacks int, answered bool) (at int) {
		at = -1
		for i := range lacks {
			asks := p.Plan(now, lacking(1), 1, nil)
			now++
			if len(asks) > 0 && at < 0 {
				at = i
			}
			for _, a := range asks {
				if answered {
					p.Answered(a.To, a.Wants[0].ID)
				}
			}
		}
		p.Plan(now, nil, 1, nil)
		return at
	}
	require.Equal(t, 2, first(4, false))
	require.Equal(t, -1, first(4, false), "pushes take 4 ticks")
	require.Equal(t, 6, first(12, false))
	require.Equal(t, 1+slowest*5/4, first(12, false))
	for range 30 {
		first(20, true)
	}
	require.Equal(t, 2, first(20, true))
}

// A peer that has given its own strip may have completed the payload.
func TestPullAsksForAllOfWhoHasNothingLeft(t *testing.T) {
	p := newPuller(PullerOptions{Patience: 1})
	missing := lacking(1)
	missing[0].Need, missing[0].First = 2, []uint8{2, 2, 0, 0, 0}
	p.Plan(0, missing, 1, nil)
	require.Equal(t, [][4]int{{3, 2, 2, 2}}, asked(p.Plan(1, missing, 1, nil)))
}

// The leader is asked when everybody else was, twice; and then the entry is
// stuck, if all answered, until somebody has something after all.
func TestPullOrder(t *testing.T) {
	p := newPuller(PullerOptions{})
	missing := lacking(1)
	var order []int
	now := 0
	for ; len(order) < 9; now++ {
		for _, a := range asked(p.Plan(now, missing, 1, nil)) {
			order = append(order, a[0])
			p.Answered(uint64(a[0]), at(1))
		}
		require.Less(t, now, 100)
	}
	require.Equal(t, []int{3, 4, 5, 6, 3, 4, 5, 6, 1}, order)
	_, stuck := p.Stuck()
	require.False(t, stuck)
	p.Plan(now, missing, 1, nil)
	index, stuck := p.Stuck()
	require.True(t, stuck)
	require.EqualValues(t, 1, index)
	// It goes on asking: those that restarted may have the units again.
	again := 0
	for ; again == 0; now++ {
		again += len(p.Plan(now, missing, 1, nil))
	}
	_, stuck = p.Stuck()
	require.True(t, stuck)
	missing[0].Need = 3
	p.Plan(now, missing, 1, nil)
	_, stuck = p.Stuck()
	require.False(t, stuck, "somebody had something")
	p.Plan(now, nil, 1, nil)
	require.Zero(t, p.onOrder)
}

// Lost messages are no reason to call an entry stuck, nor to stop asking.
func TestPullGoesOnWhileSomebodyMayAnswer(t *testing.T) {
	p := newPuller(PullerOptions{})
	missing := lacking(1)
	asks := 0
	for now := range 60 {
		p.Heard(3)
		asks += len(p.Plan(now, missing, 1, nil))
		_, stuck := p.Stuck()
		require.False(t, stuck)
	}
	require.Greater(t, asks, 15)
	// But not for ever.
	for now := 60; ; now++ {
		p.Heard(3)
		p.Plan(now, missing, 1, nil)
		if _, stuck := p.Stuck(); stuck {
			break
		}
		require.Less(t, now, 1000)
	}
}

// Nobody was heard, so an entry seems stuck. It is not, until the next that is heard has been asked.
func TestEntryIsNotStuckWhenAnotherPeerIsHeard(t *testing.T) {
	p := newPuller(PullerOptions{})
	missing, now := lacking(1), 0
	for ; !p.IsStuck(at(1)); now++ {
		p.Plan(now, missing, 0, nil)
		require.Less(t, now, 1000)
	}
	p.Heard(4)
	require.False(t, p.IsStuck(at(1)))
	asks := p.Plan(now, missing, 0, nil)
	require.Len(t, asks, 1)
	require.EqualValues(t, 4, asks[0].To)
	p.Answered(4, at(1)) // nothing
	for ; !p.IsStuck(at(1)); now++ {
		p.Plan(now, missing, 0, nil)
		p.Heard(4)
		require.Less(t, now, 1000)
	}
}

// A peer that never answers costs little after ten rounds, and is tried again.
func TestSilentPeersAreSkipped(t *testing.T) {
	p := newPuller(PullerOptions{})
	toDead, rounds := []int{}, 0
	for now := range 300 {
		// A new entry each tick, so that there is always something to ask for.
		missing := lacking(now + 10)[now:]
		for _, a := range p.Plan(now, missing, 1, nil) {
			if a.To == 3 {
				toDead = append(toDead, now)
				continue
			}
			for _, w := range a.Wants {
				p.Answered(a.To, w.ID)
			}
		}
		rounds++
	}
	late := 0
	for _, now := range toDead {
		if now >= 100 {
			late++
		}
	}
	require.LessOrEqual(t, late, 200/(probeRounds*2)+1)
	require.GreaterOrEqual(t, late, 5)
	p.Heard(3)
	missing := lacking(1)
	missing[0].Urgent = true
	require.Equal(t, [][4]int{{3, 2, 2, 0}, {4, 2, 4, 0}}, asked(p.Plan(300, missing, 1, nil)), "it is back")
}

// What is on order is bounded, but for a single entry; urgent ones come first.
func TestPullIsBounded(t *testing.T) {
	p := newPuller(PullerOptions{Patience: 1, Batch: 100}) // three entries of 32 bytes
	missing := lacking(10)
	missing[7].Urgent = true
	asks := p.Plan(0, missing, 1, nil)
	require.Equal(t, at(8), asks[0].Wants[0].ID)
	require.Equal(t, 32, p.onOrder)
	p.Plan(1, missing, 1, nil)
	require.Equal(t, 96, p.onOrder)
	p.Answered(3, at(8))
	p.Answered(4, at(8))
	require.Equal(t, 64, p.onOrder)
	p.Plan(1, append(missing[:7:7], missing[8:]...), 1, nil)
	require.Equal(t, 96, p.onOrder)

	p = newPuller(PullerOptions{Patience: 1, Batch: 1})
	p.Plan(0, missing, 1, nil)
	require.Equal(t, 16, p.onOrder, "one order, whatever its size")

	p = newPuller(PullerOptions{Patience: 1})
	many := lacking(3 * maxWants)
	p.Plan(0, many, 1, nil)
	for _, a := range p.Plan(1, many, 1, nil) {
		require.LessOrEqual(t, len(a.Wants), maxWants)
	}
}

// Whatever is lacking, urgent or not, and whoever answers: an ask names each entry once,
// in ascending order. A receiver refuses any other.
func TestAsksAreInOrder(t *testing.T) {
	mixed := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newPuller(PullerOptions{Patience: 1 + rng.IntN(2), Batch: 16 << rng.IntN(10)})
		all := lacking(40)
		for now := range 60 {
			var missing []Lacking
			for _, l := range all {
				if l.Urgent, l.Overdue = rng.IntN(4) == 0, rng.IntN(4) == 0; rng.IntN(3) > 0 {
					missing = append(missing, l)
				}
			}
			for _, a := range p.Plan(now, missing, 1, nil) {
				require.LessOrEqual(t, len(a.Wants), maxWants)
				for i, w := range a.Wants {
					if i > 0 {
						require.Less(t, a.Wants[i-1].Index, w.Index, "seed %d", seed)
						mixed++
					}
					if rng.IntN(2) == 0 {
						p.Answered(a.To, w.ID)
					}
				}
			}
		}
	}
	require.NotZero(t, mixed)
}

// Only members are asked; the node itself, or no leader, never is.
func TestPullAsksMembersOnly(t *testing.T) {
	for _, leader := range []uint64{0, 1, 2, 9} {
		p := NewPuller(2, PullerOptions{})
		p.SetMembers([]uint64{2, 4, 9})
		to := map[uint64]bool{}
		for now := range 60 {
			for _, a := range p.Plan(now, lacking(1), leader, nil) {
				to[a.To] = true
				p.Answered(a.To, at(1))
			}
		}
		want := map[uint64]bool{4: true, 9: true}
		if leader == 1 {
			want[1] = true
		}
		require.Equal(t, want, to, "leader %d", leader)
		_, stuck := p.Stuck()
		require.True(t, stuck)
	}
}

func TestPlanningNothingCostsNothing(t *testing.T) {
	p := newPuller(PullerOptions{})
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Plan(1, nil, 1, nil) }))
	missing := lacking(64)
	p.Plan(0, missing, 1, nil)
	p.Plan(5, missing, 1, nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Plan(5, missing, 1, nil) }), "nor does waiting")
}

// The entry that is to be applied next is asked for however much is on order, and what
// nobody had is asked for behind what somebody may have.
func TestWhoIsAskedForFirst(t *testing.T) {
	p := newPuller(PullerOptions{Patience: 1, Batch: 1}) // one order at a time
	missing := lacking(7)
	for i := range missing {
		missing[i].Urgent = true
	}
	vain, now := missing[:5], 0
	for ; !p.IsStuck(at(5)); now++ {
		for _, a := range p.Plan(now, vain, 1, nil) {
			p.Answered(a.To, a.Wants[0].ID)
		}
		require.Less(t, now, 200)
	}
	now += 10
	require.Equal(t, at(6), p.Plan(now, missing[:6], 1, nil)[0].Wants[0].ID)
	require.Empty(t, p.Plan(now, missing, 1, nil), "the batch is full")
	missing[6].Urgent, missing[6].Next, missing[6].Overdue = false, true, true
	require.Equal(t, at(7), p.Plan(now, missing, 1, nil)[0].Wants[0].ID)
}
