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

var limpSeeds = flag.Uint64("limp-seeds", 2, "how many seeds TestDisksThatLimpCostNobodyWithLeases runs of each size")

// TestDisksThatLimpCostNobodyWithLeases makes the disks of as many responders as may fail ten times
// as slow, whole nodes in virtual time. The responders are out of the roster within three election
// timeouts, and calls go on at nine tenths of the rate of before; the nodes return with their disks.
func TestDisksThatLimpCostNobodyWithLeases(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		for seed := uint64(1); seed <= *limpSeeds; seed++ {
			t.Run(fmt.Sprintf("%d nodes/seed %d", nodes, seed), func(t *testing.T) { limp(t, seed, nodes) })
		}
	}
}

func limp(t *testing.T, seed uint64, nodes int) {
	const long = 20 * electionTime
	s := newScenario(t, seed, func(p *plan) {
		p.voters = nodes
		p.costs.Delay, p.costs.Sync = 100*time.Microsecond, time.Millisecond
		p.leasing = leasing{on: true, lease: electionTime, fail: electionTime, driftPPM: 1000, spans: true}
	})
	g := s.groups[0]
	status := func() (named int, counts leases.Counts) {
		l := g.leading().r.Status().Leases
		if l.Roster == nil || len(l.Roster.Spans) == 0 {
			return 0, l.Counts
		}
		return len(l.Roster.Spans[0].Responders), l.Counts
	}
	for range 8 {
		s.addClient(g).near = g.leading().n.id
	}
	calls := func() (done int) {
		for _, c := range s.clients {
			done -= c.done
		}
		s.pass(long)
		for _, c := range s.clients {
			done += c.done
		}
		return done
	}
	all := func() bool { named, _ := status(); return named == nodes-1 }
	s.reaches(5*electionTime, "all others are named", all)
	healthy := calls()
	_, counts := status()
	require.Zero(t, counts.Removed)
	slow := (nodes - 1) / 2
	limping := 0
	for _, id := range g.founders {
		if n := s.node(id); limping < slow && n != g.leading().n {
			limping++
			n.disk.Slow(10, time.Hour)
		}
	}
	s.pass(3 * electionTime)
	named, counts := status()
	require.Equal(t, nodes-1-slow, named, "%+v", counts)
	rate := calls()
	named, counts = status()
	t.Logf("%d calls, %d with %d disks that are slow", healthy, rate, slow)
	require.GreaterOrEqual(t, float64(rate), 0.9*float64(healthy))
	require.Equal(t, nodes-1-slow, named)
	require.EqualValues(t, slow, counts.Limped, "%+v", counts)
	for _, id := range g.founders {
		s.node(id).disk.Mend()
	}
	s.reaches(5*electionTime, "all others are named again", all)
	s.end()
}
