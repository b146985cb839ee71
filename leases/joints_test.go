// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A leader is stable with a majority of every set that counts, of those to come too: the
// others could elect another leader (rule L29).
func TestLeaseCountsOverEverySetThatCounts(t *testing.T) {
	s := newStage(t, 5, 3, nil, nil)
	m := s.member(1)
	members := m.lease.members
	members.Coming = [][]NodeID{{1, 2, 3, 4}, {1, 2, 3, 4, 5}}
	m.lease.Configured(m.reading(), members)
	s.sever([]NodeID{1, 2}, []NodeID{3, 4, 5})
	s.pass(s.set.cfg.Lease)
	require.False(t, s.serves(1, Span{}), "3, 4 and 5 may have elected another leader")
	require.Nil(t, m.lease.Permit(nil))
	s.heal()
	s.until("4, who is to come, is asked and grants", time.Second, func() bool { return s.serves(1, Span{}) })

	// The same with nodes that are no members here yet.
	s = newStage(t, 5, 3, nil, nil)
	m = s.member(1)
	members.Learners = nil // of 4 and 5
	m.lease.Configured(m.reading(), members)
	for _, id := range []NodeID{4, 5} {
		m.lease.peer(id).follow, m.lease.peer(id).holding = follow{}, holding{}
		s.member(id).lease.adopted, s.member(id).lease.rosters = nil, rosters{}
	}
	s.sever([]NodeID{1}, []NodeID{3})
	s.pass(s.set.cfg.Lease) // the lease of 3 has ended
	s.until("4 and 5 hear of the roster, and grant", time.Second, func() bool { return s.serves(1, Span{}) })
}

// Node 3 leaves, loses its disk, and comes back, and the leader has nothing but the lease that it had granted before.
func TestLeaseOfAMemberThatLeftDoesNotCount(t *testing.T) {
	for name, leave := range map[string]func(*Node, Instant){
		"the change is applied": func(n *Node, now Instant) {
			conf := n.members
			n.Configured(now, Members{Voters: Voters{Incoming: []NodeID{1, 2}}})
			n.Configured(now, conf)
		},
		"the change is applied, and the log has it come back": func(n *Node, now Instant) {
			conf, later := n.members, Members{Voters: Voters{Incoming: []NodeID{1, 2}}, Coming: [][]NodeID{{1, 2}, {1, 2, 3}}}
			n.Configured(now, later)
			n.Configured(now, conf)
		},
		"a snapshot has both changes": func(n *Node, _ Instant) { n.Restored(n.last) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 3, 3, []NodeID{3}, nil)
			s.sever([]NodeID{1}, []NodeID{2})
			s.pass(s.set.cfg.Lease)
			m := s.member(1)
			p := m.lease.peer(3)
			require.True(t, s.serves(1, Span{}))
			require.True(t, p.promise.binds(m.reading()), "of 3, too, something is known")
			m.lease.ask(m.reading(), p)
			late := Answer{Nonce: Nonce{Boot: m.lease.cfg.Boot, Counter: m.lease.newestTo(p)}, For: s.set.cfg.Lease, Seq: m.lease.rosters.newest().ID.Seq}
			leave(m.lease, m.reading())
			require.False(t, s.serves(1, Span{}))
			m.lease.stepAnswer(p, late)
			require.False(t, s.serves(1, Span{}), "by the answer to an earlier request")
		})
	}
}

// The heir may be a member that leases do not know: it has nothing to adopt.
func TestHeirThatLeasesDoNotKnowMayLead(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(1)
	m.lease.HandOver(m.reading(), true, false)
	s.until("the leader has given its leases back", time.Second, func() bool { return m.lease.MayHandOver(2) })
	require.Nil(t, m.lease.peer(9))
	require.True(t, m.lease.MayHandOver(9))
}

// A leader that must hand over gives its leases back at once, though most members hear nothing
// and no roster can be superseded.
func TestLeaderThatMustHandOverWaitsForNobody(t *testing.T) {
	for _, must := range []bool{false, true} {
		s := newStage(t, 3, 3, []NodeID{2}, nil)
		m := s.member(1)
		s.sever([]NodeID{1}, []NodeID{2, 3})
		m.lease.HandOver(m.reading(), true, must)
		m.flush()
		s.pass(ms)
		require.Equal(t, must, m.lease.MayHandOver(2))
		require.Equal(t, !must, s.serves(1, Span{}))
	}
}

// Ticks that are always late are no pauses. A dead responder is removed, whatever the ticks.
func TestDeadResponderIsRemovedByALeaderWithLateTicks(t *testing.T) {
	for _, gaps := range [][]time.Duration{{60 * ms}, {60 * ms, ms, ms}, {150 * ms}, {150 * ms, ms}, {90 * ms, 90 * ms, 20 * ms}} {
		t.Run(fmt.Sprint(gaps), func(t *testing.T) {
			s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
			s.pass(100 * ms)
			m, longest := s.member(1), time.Duration(0)
			m.deafToTicks = true
			turn := 0
			var tick func()
			tick = func() {
				s.after(gaps[turn%len(gaps)], func() {
					m.lease.Tick(m.reading())
					m.flush()
					tick()
				})
				longest = max(longest, gaps[turn%len(gaps)])
				turn++
			}
			tick()
			s.member(3).stop()
			i := s.write(1, 0)
			c := s.set.cfg
			took := s.until("the write is committed", 10*time.Second, func() bool { return s.committed(1, i) })
			t.Logf("held up for %v", took)
			require.LessOrEqual(t, took, c.Fail+c.Lease+4*longest+rounds)
		})
	}
}

// A leader that stood still once gives its responders time to be heard.
func TestPauseOfTheLeaderRemovesNobody(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	m := s.member(1)
	for range 3 {
		s.pass(time.Second)
		m.pause()
		s.pass(180 * ms)
		m.tick() // before the answers that wait
		m.resume()
	}
	s.pass(time.Second)
	require.Zero(t, m.lease.counts.Removed)
}

// What was asked for, and measured, by a clock that is not fit does not count when it is fit
// again: an answer may come late, too.
func TestLeasesMeasuredByAnUnfitClockDoNotCount(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(1)
	m.lease.StandAside(m.reading(), true)
	s.pass(100 * ms)
	require.True(t, len(m.lease.Status(m.reading()).Leases) > 0, "a leader goes on asking")
	m.lease.StandAside(m.reading(), false)
	require.Empty(t, m.lease.Status(m.reading()).Leases)
	require.False(t, s.serves(1, Span{}))
	s.until("it asks anew", time.Second, func() bool { return s.serves(1, Span{}) })
}

// A clock may read below 0, and runs there as anywhere.
func TestClockBelowZeroRuns(t *testing.T) {
	last := Instant(0)
	for _, reading := range []time.Duration{-1 << 63, -time.Hour, -1, 0, 1, time.Hour, 1<<63 - 1} {
		require.Greater(t, InstantOf(reading), last, reading)
		last = InstantOf(reading)
	}
	require.Equal(t, 2*time.Second, InstantOf(-time.Second).after(2*time.Second).since(InstantOf(-time.Second)))
	require.Equal(t, InstantOf(time.Second), InstantOf(-time.Second).after(2*time.Second))
}

// clocks returns a node and a message of its leader's, whose clock has another bound.
func clocks(t *testing.T, theirs ClockBound) (*Node, Message) {
	n, err := New(Config{ID: 1, Boot: 1, ElectionTimeout: time.Second}, Start{Now: 1, Term: 1, Empty: true})
	require.NoError(t, err)
	n.Configured(1, Members{Voters: Voters{Incoming: []NodeID{1, 2}}})
	n.Turned(1, Turn{Term: 1, Leader: 2})
	return n, Message{Term: 1, Clock: theirs, Request: Nonce{Boot: 7, Counter: 1}}
}

// Bounds of clocks are each node's own setting. The worse one counts for both.
func TestWorseClockCountsForBoth(t *testing.T) {
	n, m := clocks(t, ClockBound{DriftPPM: 100_000, Resolution: 5 * ms})
	require.NoError(t, n.Step(2, 2, m))
	require.Equal(t, n.cfg.delta(m.Clock), n.cfg.delta(n.peer(2).clock))
	own := n.cfg.delta(n.cfg.clock())
	require.Greater(t, n.cfg.delta(n.peer(2).clock), own+150*ms)
	require.Equal(t, own, n.cfg.delta(ClockBound{DriftPPM: 1, Resolution: 1}), "a better clock of the peer's changes nothing")

	n.peer(2).sent[0] = sentRequest{counter: 1, at: 10}
	n.counter = 1
	require.NoError(t, n.Step(20, 2, Message{Term: 1, Clock: m.Clock, Answer: Answer{Nonce: Nonce{Boot: 1, Counter: 1}, For: time.Second, Seq: 1}}))
	require.Equal(t, Instant(10).after(time.Second-n.cfg.delta(m.Clock)), n.peer(2).holding.until)
}

// A peer with a clock by which no lease could be renewed gets none, and both are named.
func TestNodesWhoseClocksAllowNoLeaseAreNamed(t *testing.T) {
	n, m := clocks(t, ClockBound{DriftPPM: 250_000, Resolution: 300 * ms})
	m.Answer = Answer{Nonce: Nonce{Boot: 1, Counter: 1}}
	err := n.Step(2, 2, m)
	require.ErrorIs(t, err, ErrClocks)
	require.ErrorContains(t, err, "node 1 has DriftPPM 1000 and Resolution 1ms, and node 2 has DriftPPM 250000 and Resolution 300ms")
	require.True(t, n.peer(2).request.isNone())
	require.Equal(t, uint64(1), n.counts.Refused)
}

// A leader answers a member with such a clock, which may have to learn which roster is the newest, and grants it nothing.
func TestLeaderAnswersAClockThatAllowsNoLease(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m, x := s.member(1), Nonce{Boot: s.member(2).lease.cfg.Boot, Counter: 1 << 20}
	require.ErrorIs(t, m.lease.Step(m.reading(), 2, Message{Term: 1, Clock: ClockBound{Resolution: 130 * ms}, Request: x}), ErrClocks)
	require.Equal(t, Answer{Nonce: x}, m.lease.peer(2).owed)
}

// Nobody is named before a voter that has just joined has shown what it runs with: without
// leases it adopts nothing, and two dead responders would hold writes up until one is back.
func TestNobodyIsNamedUntilANewVoterHasShownItsLeases(t *testing.T) {
	s := newStage(t, 4, 3, []NodeID{2}, nil)
	m := s.member(1)
	s.sever([]NodeID{4}, []NodeID{1, 2, 3})
	m.lease.peer(4).follow = follow{}
	m.lease.Configured(m.reading(), Members{Voters: Voters{Incoming: []NodeID{1, 2, 3, 4}}})
	require.False(t, m.lease.mayName(m.reading()), "4 may run without leases")
	require.True(t, m.lease.mayName(m.reading().after(s.set.cfg.Fail)), "4 is dead")
	m.lease.peer(4).follow.leased = true
	require.True(t, m.lease.mayName(m.reading()))
}
