// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stage is a group in which nothing goes wrong but what a test makes go wrong. All
// invariants of the seeds are looked at. Messages take a millisecond.
type stage struct {
	*world
	t *testing.T
}

const ms = time.Millisecond

// newStage starts a group. Node 1 leads, and the nodes wanted are responders
// of every key when newStage returns.
func newStage(t *testing.T, nodes, voters int, wanted []NodeID, change func(*settings)) *stage {
	w := &world{rng: rand.New(rand.NewPCG(1, 1)), opt: options{verbose: true}, calm: true}
	w.set = settings{
		nodes: nodes, voters: voters, first: 1, delay: ms, sync: 100 * time.Microsecond, tick: 5 * ms,
		cfg: Config{Lease: 400 * ms, ElectionTimeout: 300 * ms, Heartbeat: 20 * ms, Fail: 100 * ms, DriftPPM: 1000, Resolution: 10 * time.Microsecond},
	}
	if wanted != nil {
		w.set.cfg.Wanted = []Want{{Nodes: wanted}}
	}
	if change != nil {
		change(&w.set)
	}
	s := &stage{world: w, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			for _, line := range w.trace {
				t.Log(line)
			}
		}
	})
	w.begin()
	s.until("the responders are stable", time.Second, func() bool {
		for _, want := range w.set.cfg.Wanted {
			for _, id := range want.Nodes {
				if id != AllVoters && !s.serves(id, want.Span) {
					return false
				}
			}
		}
		return s.member(1).leads && s.serves(1, Span{})
	})
	return s
}

// serves reports whether a member would answer reads of a span.
func (s *stage) serves(id NodeID, span Span) bool {
	m := s.member(id)
	return m.alive && m.lease.IsStable(m.reading(), span)
}

// until lets time pass until something holds, a tenth of a millisecond at a time.
func (s *stage) until(what string, atMost time.Duration, holds func() bool) time.Duration {
	s.t.Helper()
	began := s.now
	for !holds() {
		if s.now-began >= atMost {
			require.Empty(s.t, s.failure)
			require.Failf(s.t, "too late", "%s: not after %v", what, atMost)
		}
		s.pass(ms / 10)
	}
	return s.now - began
}

// pass lets time pass. Most of the calls are for a tenth of a millisecond, in which a look at the stack for the place of
// a failure would take longer than all else.
func (s *stage) pass(d time.Duration) {
	if s.run(d); s.failure != "" {
		s.t.Helper()
		require.Empty(s.t, s.failure)
	}
}

// write has the leader append a write of a key, and returns its index.
func (s *stage) write(leader NodeID, key int) Index {
	m := s.member(leader)
	require.True(s.t, m.leads)
	m.propose(entry{keys: 1 << key, told: s.set.spans})
	m.flush()
	return m.last()
}

// committed reports whether a member knows that an entry is committed.
func (s *stage) committed(id NodeID, i Index) bool { return s.member(id).commit >= i }

// sever loses all that is sent between two sets of members from now on.
func (s *stage) sever(a, b []NodeID) {
	for _, x := range a {
		for _, y := range b {
			s.cut[x][y], s.cut[y][x] = true, true
		}
	}
}

// heal ends all cuts and delays.
func (s *stage) heal() {
	for i := range s.cut {
		clear(s.cut[i])
		clear(s.slow[i])
		clear(s.bulk[i])
	}
}

// rounds is how long two message rounds take, with what disks and ticks add.
const rounds = 4*ms + 2*5*ms + ms
