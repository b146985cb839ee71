// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var muteSeeds = flag.Uint64("mute-seeds", 4, "how many seeds TestMuteLeaderIsReplacedInTime runs, from -first on")

// TestMuteLeaderIsReplacedInTime has nothing arrive that a leader sends, which hears all. Ticks of all nodes are at the same
// instants. Calls at the other nodes go on within two election timeouts, because members yield to each other instead of splitting their votes.
func TestMuteLeaderIsReplacedInTime(t *testing.T) {
	t.Parallel()
	// By these seeds members that do not yield split their votes, by the first one twice in a row.
	seeds := []uint64{55, 18, 25}
	for seed := uint64(0); seed < *muteSeeds; seed++ {
		seeds = append(seeds, *firstSeed+seed)
	}
	var worst time.Duration
	var yields uint64
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := newScenario(t, seed, func(p *plan) {
			p.placing.on, p.voters = true, 3+2*rng.IntN(2)
			p.costs.Delay, p.costs.Sync = 400*time.Microsecond, 800*time.Microsecond
			p.think, p.deadline = time.Millisecond, 4*electionTime
			p.coding = coding{on: rng.IntN(2) == 0, threshold: 64}
		})
		g := s.groups[0]
		leader := g.leading()
		writers := s.addWriters(leader.n, 1, 0.5)
		s.pass(electionTime + s.rng.Span(1, electionTime))
		s.eachLink(leader.n, func(out, _ *world.Link) { out.Block(true) })
		calls := func() (n int) {
			for _, w := range writers {
				n += len(w.took)
			}
			return n
		}
		for end := s.Now() + 4*electionTime; s.Now() < end; {
			began, done := s.Now(), calls()
			s.until(5*electionTime, func() bool { return calls() > done })
			s.ok("calls with a mute leader")
			worst = max(worst, s.Now()-began)
			require.LessOrEqual(t, s.Now()-began, 2*electionTime, "seed %d, %d voters: without an answer\n%s", seed, s.plan.voters, s.story.Recent())
		}
		s.eachLink(leader.n, func(out, _ *world.Link) { out.Block(false) })
		for _, n := range s.nodes[:s.plan.voters] {
			yields += n.members[1].r.Status().Counters.Yields
		}
		s.end()
	}
	t.Logf("members yielded %d times; the longest time without an answer: %v", yields, worst)
	require.NotZero(t, yields)
}
