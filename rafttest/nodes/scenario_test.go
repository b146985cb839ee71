// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/session"
)

// scenario is a run without faults but those that a test makes.
type scenario struct {
	faults
	t       *testing.T
	clients []*client
}

// quiet takes all faults out of a plan, and makes the nodes ordinary ones.
func quiet(p *plan) {
	*p = plan{duration: time.Hour, voters: 3, groups: 1, costs: measured,
		batchBytes: 64 << 10, batches: 64, queueBytes: 1 << 20, calls: 4096,
		appendBytes: 256 << 10, inflightMsgs: 64, inflightBytes: 4 << 20, uncommitted: 16 << 20, applyBytes: 1 << 20,
		receiveBytes: 4 << 20, linkBytes: 4 << 20, chunkBytes: 16 << 10,
		segmentBytes: 32 << 10, logBytes: 4 << 20, logBatch: 1 << 20, logCache: 1 << 20,
		retainEntries: 1000, retainBytes: 16 << 20, heartbeatTick: 1, keepEvery: 50,
		keys: 4, think: 5 * time.Millisecond, smallest: 16, largest: 200, deadline: 20 * electionTime,
	}
	p.sessions = session.Limits{Sessions: 1000, Results: 8, ResultBytes: 1 << 10}
	p.costs.Sync = 200 * time.Microsecond
}

// newScenario begins a run in which every group has a leader.
func newScenario(t *testing.T, seed uint64, tune func(*plan)) *scenario {
	s := &scenario{t: t, faults: faults{newSim(seed, options{tune: func(p *plan) {
		quiet(p)
		if tune != nil {
			tune(p)
		}
	}})}}
	s.found(seed)
	for _, g := range s.groups {
		require.True(t, s.until(20*electionTime, func() bool { return g.leading() != nil }), "no leader: %v", s.failure)
	}
	return s
}

func (s *scenario) addClient(g *group) *client {
	c := s.sim.addClient(g)
	s.clients = append(s.clients, c)
	return c
}

// until runs until a condition holds. The result is false if the condition does
// not hold within a time.
func (s *scenario) until(limit time.Duration, so func() bool) bool {
	end := s.Now() + limit
	for s.failure == nil && !so() {
		if s.Now() >= end {
			return false
		}
		s.events++
		s.Step(end)
	}
	return s.failure == nil
}

// ok fails the test if an invariant does not hold.
func (s *scenario) ok(format string, args ...any) {
	s.t.Helper()
	if s.failure != nil {
		s.t.Fatalf("%s: %v\n%s", fmt.Sprintf(format, args...), s.failure, s.story.Recent())
	}
}

// pass lets a time pass.
func (s *scenario) pass(d time.Duration) {
	s.until(d, func() bool { return false })
	s.ok("after %v", s.Now())
}

// reaches runs until something is so.
func (s *scenario) reaches(limit time.Duration, what string, so func() bool) {
	s.t.Helper()
	done := s.until(limit, so)
	s.ok("%s", what)
	if !done {
		s.t.Fatalf("not within %v: %s\n%s", limit, what, s.story.Recent())
	}
}

// end stops the clients, brings the groups to rest, and checks what must be true
// in the end.
func (s *scenario) end() {
	s.t.Helper()
	for _, c := range s.clients {
		c.stopped = true
	}
	s.plan.duration = s.Now()
	s.calm()
	s.reaches(2*finaleTime, "rest", func() bool { return s.sim.end.done })
	s.checkHistory()
	s.ok("in the end")
}
