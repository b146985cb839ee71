// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestLeaderDiesWhileOthersHaveNoRoom fills the disks of some followers and lets
// the leader, and others, lose power. Those that are left are a majority only
// together with followers whose logs are stalled. They elect a leader within the
// usual time, and acknowledge writes when one of the stalled logs has room again.
func TestLeaderDiesWhileOthersHaveNoRoom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ voters, full, dead int }{{3, 1, 1}, {5, 2, 1}, {5, 1, 2}} {
		t.Run(fmt.Sprintf("%d of %d full, %d dead", tt.full, tt.voters, tt.dead), func(t *testing.T) {
			var worst time.Duration
			for seed := uint64(1); seed <= 10; seed++ {
				s := newScenario(t, seed, func(p *plan) { p.voters, p.deadline, p.rewrites = tt.voters, 3*electionTime, true })
				worst = max(worst, s.loseLeaderWithoutRoom(tt.full, tt.dead))
				s.end()
			}
			t.Logf("longest time until there was a leader: %v", worst)
		})
	}
}

// loseLeaderWithoutRoom stalls some logs, and stops the leader and other nodes. It
// returns how long there was no leader.
func (s *scenario) loseLeaderWithoutRoom(full, dead int) time.Duration {
	s.t.Helper()
	g := s.groups[0]
	for range 4 {
		s.addClient(g).patient = true
	}
	s.pass(2 * electionTime)
	leader := g.leading().n
	all := s.nodes[:s.plan.voters]
	others := slices.DeleteFunc(slices.Clone(all), func(n *node) bool { return n == leader })
	for _, n := range others[:full] {
		n.disk.Fill(true, time.Hour)
	}
	s.reaches(time.Minute, "stalled logs", func() bool {
		return !slices.ContainsFunc(others[:full], func(n *node) bool { return n.disk.stalled == nil })
	})
	for _, n := range append([]*node{leader}, others[full:full+dead-1]...) {
		n.crash(true)
	}
	lost := s.Now()
	s.reaches(5*electionTime, "a leader", func() bool { return g.leading() != nil })
	took := s.Now() - lost
	others[0].disk.Mend()
	writes := s.reach.Writes
	s.reaches(8*electionTime, "a write", func() bool { return s.reach.Writes > writes })
	for _, n := range all {
		n.start()
	}
	return took
}
