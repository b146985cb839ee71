// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var homeSeeds = flag.Uint64("home-seeds", 4, "how many seeds TestGatewayIsServedWhileItsHomeIsNotWell runs of each trouble, from -first on")

// TestGatewayIsServedWhileItsHomeIsNotWell has something be wrong with the home of a gateway for 20 election timeouts, while all
// others are well, the leader among them. No command waits at the gateway for more than 5 election timeouts in which none is served: one
// until it is sent again, so that the leader says that it has applied it, and three for the home to report it. No query waits for more
// than 3.
func TestGatewayIsServedWhileItsHomeIsNotWell(t *testing.T) {
	t.Parallel()
	for what := range homeTroubles {
		for _, queries := range []bool{false, true} {
			t.Run(fmt.Sprintf("trouble %d/queries %v", what, queries), func(t *testing.T) {
				var worst time.Duration
				moves := 0
				for seed := range seeds.InShort(*homeSeeds, 1) {
					gap, moved := troubledHome(t, *firstSeed+seed, what, queries)
					worst = max(worst, gap)
					if moved {
						moves++
					}
				}
				t.Logf("%d moves, the longest pause is %v", moves, worst)
				most := 5 * electionTime
				if queries {
					most = 3 * electionTime
				}
				require.LessOrEqual(t, worst, most)
			})
		}
	}
}

// troubledHome returns the longest time in which calls waited and none was served, and whether the gateway moved.
func troubledHome(t *testing.T, seed uint64, what homeTrouble, queries bool) (gap time.Duration, moved bool) {
	s := newScenario(t, seed, func(p *plan) {
		p.voters, p.gates.gates = 3+2*int(seed%2), 1
		p.costs.Delay = time.Millisecond
	})
	s.startGates()
	g, gt := s.groups[0], s.gates[0]
	gw := gt.groups[g.id]
	s.pass(5 * electionTime)
	home := gw.r.Status().Home
	require.NotEqual(t, g.leading().n.id, home)
	end, every := s.Now()+25*electionTime, s.rng.Span(tickTime/2, 3*electionTime)
	var waits time.Duration // since when calls wait, and none was served; 0: none waits
	under := 0
	ended := func(err error) {
		if under--; under > 0 && err != nil {
			return
		}
		if gap, waits = max(gap, s.Now()-waits), 0; under > 0 {
			waits = s.Now()
		}
	}
	var call func()
	call = func() {
		if s.Now() >= end {
			return
		}
		s.After(s.rng.Wait(every), call)
		if under++; waits == 0 {
			waits = s.Now()
		}
		s.history.operations++
		op := &operation{id: s.history.operations, verb: verbPut, key: storeKeys - 1, value: s.history.operations, seq: 1, padding: 16}
		if queries {
			leader := g.leading()
			leader.n.bound(func() { leader.propose(op, 10*electionTime, func(answer, error) {}) })()
			gw.query(1, 10*electionTime, func(_ uint32, err error) { ended(err) })
			return
		}
		gw.propose(op, 10*electionTime, func(_ answer, err error) { ended(err) })
	}
	call()
	s.pass(s.rng.Span(1, electionTime))
	s.troubleHome(gt, g, what, 20*electionTime)
	s.pass(end - s.Now())
	if waits > 0 {
		gap = max(gap, s.Now()-waits)
	}
	require.NotZero(t, s.gateReach.Troubles[what])
	moved = gw.r.Status().Home != home
	s.end()
	return gap, moved
}
