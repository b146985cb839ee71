// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/leases"
)

var slowLeaderSeeds = flag.Uint64("slow-leader-seeds", 2, "how many seeds TestSlowLeaderCostsNobodyWithLeases runs of each size and fault")

// TestSlowLeaderCostsNobodyWithLeases has the links or the disk of a leader take ten times as long, where all nodes are
// responders. From one election timeout after links became slow on, or four of a disk, which needs longer to be sure of,
// clients of the other nodes have nine tenths of their calls at least, and the slowest of a hundred takes at most twice as
// long as before. The next leader names all others but the former one, once, and rosters then stay as they are.
func TestSlowLeaderCostsNobodyWithLeases(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 5} {
		for seed := uint64(1); seed <= *slowLeaderSeeds; seed++ {
			for _, disk := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d nodes/seed %d/disk %v", nodes, seed, disk), func(t *testing.T) { slowLeader(t, seed, nodes, disk) })
			}
		}
	}
}

func slowLeader(t *testing.T, seed uint64, nodes int, disk bool) {
	const long, lasting = 10 * electionTime, 60 * electionTime
	s := newScenario(t, seed, func(p *plan) {
		p.placing.on, p.voters, p.links.Slower = true, nodes, 10
		p.think, p.deadline, p.costs.Sync, p.costs.Delay = 10*time.Microsecond, 5*electionTime, 800*time.Microsecond, 400*time.Microsecond
		p.leasing = leasing{on: true, lease: electionTime, fail: electionTime, driftPPM: 1000, spans: true}
	})
	g := s.groups[0]
	leader := g.leading()
	writers := s.addWriters(leader.n, 8/(nodes-1), 0.5)
	s.pass(20 * electionTime)
	before := s.took(writers, long)
	require.Same(t, leader, g.leading(), "leadership moves without a reason")
	settles := electionTime
	if disk {
		settles = 4 * electionTime
		leader.n.disk.Slow(10, lasting)
	}
	for _, n := range s.nodes {
		if n != leader.n && !disk {
			s.net.Link(leader.n.id, n.id).Slow(lasting)
			s.net.Link(n.id, leader.n.id).Slow(lasting)
		}
	}
	s.pass(settles)
	after := s.took(writers, long)
	t.Logf("%d calls, then %d; the slowest of a hundred takes %v, then %v", len(before), len(after), before[len(before)*99/100], after[len(after)*99/100])
	require.GreaterOrEqual(t, float64(len(after)), 0.9*float64(len(before)))
	require.Less(t, after[len(after)*99/100], 2*before[len(before)*99/100])
	require.Equal(t, 2, g.changes)
	roster := func() *leases.Roster { return g.leading().r.Status().Leases.Roster }
	named := roster()
	require.Len(t, named.Spans[0].Responders, nodes-2)
	for _, r := range named.Spans[0].Responders {
		require.NotEqualValues(t, leader.n.id, r.Node)
	}
	s.pass(long)
	require.Equal(t, named.ID, roster().ID)
	require.Zero(t, g.leading().r.Status().Leases.Counts.Removed)
	s.end()
}
