// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var lateSeeds = flag.Uint64("late-seeds", 4, "how many seeds TestDisksThatHangHoldNoGroup runs, from -first on")

// TestDisksThatHangHoldNoGroup lets the disks of a minority hang, the leader's among them or not, for
// a tenth of an election timeout to ten, again and again. Writes at the other nodes go on within two
// election timeouts, and leadership moves for disks that are late, and for these only.
func TestDisksThatHangHoldNoGroup(t *testing.T) {
	t.Parallel()
	var worst time.Duration
	var hangs, moves, late, silences int
	// By seed 100 a new leader's first entries, for which it has predictions of a far network, wait for
	// units on a disk that hangs; by seed 106 a leader and a follower of five hang at once.
	seeds := []uint64{100, 106}
	for seed := *firstSeed; seed < *firstSeed+*lateSeeds; seed++ {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		s := newScenario(t, seed, func(p *plan) {
			draw := rand.New(rand.NewPCG(seed, 1))
			p.voters, p.deadline = 3+2*draw.IntN(2), electionTime
			p.coding = coding{on: draw.IntN(2) == 0, threshold: 64}
		})
		g := s.groups[0]
		for range 6 {
			s.addClient(g).patient = true
		}
		s.pass(electionTime)
		before := g.changes
		for range 6 {
			longest, led := s.hangSome(g)
			worst = max(worst, longest)
			hangs++
			require.LessOrEqual(t, longest, 2*electionTime, "seed %d: without a write\n%s", seed, s.story.Recent())
			late += led
		}
		moved := g.changes - before
		moves += moved
		require.LessOrEqual(t, moved, 6, "seed %d: leadership flaps", seed)
		for _, n := range s.nodes[:s.plan.voters] {
			silences += int(n.members[1].r.Status().Counters.Silences)
		}
		s.end()
	}
	t.Logf("%d times, leaders late %d times, %d moves, %d times silent; longest time without a write: %v", hangs, late, moves, silences, worst)
	require.NotZero(t, late)
	require.NotZero(t, moves)
}

// hangSome lets disks of a minority hang once, and returns the longest time without a write until
// well after the end, and how many leaders were late.
func (s *scenario) hangSome(g *group) (longest time.Duration, late int) {
	s.t.Helper()
	s.reaches(2*electionTime, "a leader", func() bool { return g.leading() != nil })
	lasting := time.Duration(float64(electionTime) * []float64{0.1, 0.5, 1.5, 3, 10}[s.rng.IntN(5)])
	chosen := s.rng.Perm(s.plan.voters)[:1+s.rng.IntN(s.plan.voters/2)]
	leader := g.leading()
	if s.rng.Chance(0.6) {
		chosen[0] = int(leader.n.id) - 1
	}
	for _, i := range chosen {
		s.tell(s.nodes[i].id, "disk hangs for %v", lasting)
		s.nodes[i].disk.Hang(lasting)
	}
	end := s.Now() + lasting + 3*electionTime
	handOvers := func() uint64 { return leader.r.Status().Counters.HandOversLate }
	before := handOvers()
	for s.Now() < end {
		began, writes := s.Now(), s.reach.Writes
		s.until(5*electionTime, func() bool { return s.reach.Writes > writes })
		s.ok("writes while %v hang", chosen)
		longest = max(longest, s.Now()-began)
	}
	return longest, int(handOvers() - before)
}
