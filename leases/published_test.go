// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of this file are schedules that break systems as published. Each shows
// that the published rule lets a read be stale, or a write wait without end, and our
// rule does not.

// Five members, 2 and 3 are responders. A write has reached all but 3. By notes 2
// knows that a majority holds it, and releases it where a majority is enough; 3
// would go on answering with the older value.
func TestNotesOfAMajorityDoNotRelease(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, func(x *settings) { x.cfg.Notes = true })
	s.bulk[1][3] = time.Hour
	i := s.write(1, 0)
	s.pass(20 * ms)
	m := s.member(2)
	held := func(id NodeID) Index {
		if id == m.id {
			return m.durable
		}
		return m.lease.Noted(id)
	}
	require.GreaterOrEqual(t, m.conf.Voters.committed(held), i, "the published rule would release the entry")
	require.True(t, s.serves(3, keyOf(0)), "while node 3 answers without it")
	require.Less(t, s.member(3).last(), i)
	require.False(t, s.committed(2, i))
	s.bulk[1][3] = 0
	s.until("the entry is released", 50*ms, func() bool { return s.committed(2, i) })
	require.Positive(t, s.reached.NoteCommits)
}

// Five members, 2 and 3 are responders. Of five acknowledgements four have come,
// as many as a majority and all responders are: but not that of 3.
func TestCommitsAwaitRespondersByName(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	s.bulk[1][3] = time.Hour
	i := s.write(1, 0)
	s.pass(20 * ms)
	count := 0
	for _, v := range []NodeID{1, 2, 3, 4, 5} {
		if s.member(1).match[v] >= i {
			count++
		}
	}
	require.Equal(t, 4, count, "a count of three, or of four, would let the entry commit")
	require.True(t, s.serves(3, keyOf(0)), "while node 3 answers without it")
	require.False(t, s.committed(1, i))
}

// Three members, 2 is a responder. What 1 answers its requests with takes long. The
// promises of 1 and 3 end, 3 is elected and writes. A lease that counted from
// when the answer came would still count.
func TestLeasesCountFromTheRequest(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	s.slow[1][2] = 150 * ms
	s.pass(600 * ms)
	p := s.member(2)
	arrived := Instant(0)
	before := p.lease.peer(1).holding.counter
	s.until("an answer arrives", time.Second, func() bool {
		arrived = p.reading()
		return p.lease.peer(1).holding.counter > before
	})
	promised := p.lease.peer(1).holding.until.since(0)
	s.sever([]NodeID{2}, []NodeID{1, 3})
	s.member(1).stop()
	g := s.member(3)
	s.until("nobody is bound to node 2", time.Second, func() bool { return !s.serves(2, keyOf(0)) })
	s.until("node 3 is bound to nobody", time.Second, func() bool { return g.lease.MayCampaign(g.reading()) })
	d := s.set.cfg.ElectionTimeout - p.lease.delta
	require.Greater(t, arrived.after(d).since(0), promised+100*ms, "counted from the answer the lease would be longer by what it took")
}

// Two clocks at the two ends of the bound. The grantor, which is fast, has kept
// its promise when it votes for another, and the grantee, which is slow, would still count what was promised.
func TestDriftIsTakenOffLeases(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, func(x *settings) {
		x.cfg.DriftPPM = 100_000
		x.rates = []float64{1.1, 0.9, 1.1}
	})
	p, g := s.member(2), s.member(1)
	s.pass(200 * ms)
	s.sever([]NodeID{2}, []NodeID{1, 3})
	s.until("the promise ends", time.Second, func() bool { return g.lease.peer(2).promise.until <= g.reading() })
	h := p.lease.peer(1).holding
	require.LessOrEqual(t, h.until, p.reading(), "what node 2 counts has ended")
	require.Greater(t, h.until.after(p.lease.delta), p.reading().after(20*ms), "without the margin it would still count")
}

// A responder dies. Without removal nothing is written any more.
func TestDeadResponderHoldsAWriteUpOnce(t *testing.T) {
	for name, kill := range map[string]func(*stage){
		"dead":                func(s *stage) { s.member(3).stop() },
		"paused":              func(s *stage) { s.member(3).pause() },
		"its disk is stuck":   func(s *stage) { s.member(3).stuck = true },
		"it hears nothing":    func(s *stage) { s.cut[1][3], s.cut[2][3], s.cut[4][3], s.cut[5][3] = true, true, true, true },
		"it is not heard":     func(s *stage) { s.cut[3][1], s.cut[3][2], s.cut[3][4], s.cut[3][5] = true, true, true, true },
		"it hears no entries": func(s *stage) { s.bulk[1][3] = time.Hour },
		"it is slow":          func(s *stage) { s.bulk[1][3] = 300 * ms },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
			s.pass(100 * ms)
			kill(s)
			i := s.write(1, 0)
			c := s.set.cfg
			took := s.until("the write is committed", 10*time.Second, func() bool { return s.committed(1, i) })
			t.Logf("held up for %v", took)
			require.LessOrEqual(t, took, c.Fail+c.Lease+rounds)
			for range 50 {
				j := s.write(1, 1)
				took := s.until("a later write is committed", time.Second, func() bool { return s.committed(1, j) })
				require.LessOrEqual(t, took, 5*ms)
				s.pass(5 * ms)
			}
		})
	}
	t.Run("the published rule", func(t *testing.T) {
		s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
		s.member(1).deafToTicks = true // its detector sees no time pass
		s.member(3).stop()
		i := s.write(1, 0)
		s.pass(10 * time.Second)
		require.False(t, s.committed(1, i))
	})
}
