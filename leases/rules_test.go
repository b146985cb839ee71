// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of this file are schedules, too rare among seeds, that need one
// rule each.

// Voters 1, 2 and 3; 2 is a responder and applies nothing for a while. 4 and 5
// become voters, one after the other. The network splits between 1 and 2, a
// majority of the three that node 2 knows of, and 3, 4 and 5, a majority of five.
func TestConfigurationWaitsUntilNobodyIsNamed(t *testing.T) {
	s := newStage(t, 5, 3, []NodeID{2}, nil)
	p := s.member(2)
	p.slowApply = true
	for _, id := range []NodeID{4, 5} {
		l := s.member(1)
		c := Members{Voters: l.conf.Voters.clone(), Learners: l.conf.Learners}
		c.Incoming = ascending(c.Incoming, []NodeID{id})
		c.Learners = without(c.Learners, id)
		l.wantChange(c)
		s.until("the leader has applied the change", time.Second, func() bool { return l.conf.Voters.has(id) })
	}
	s.pass(50 * ms)
	s.sever([]NodeID{1, 2}, []NodeID{3, 4, 5})
	// All invariants are looked at: had node 2 a majority, it would answer without what comes now.
	s.until("3, 4 or 5 leads", 5*time.Second, func() bool {
		return s.member(3).leads || s.member(4).leads || s.member(5).leads
	})
	for _, m := range s.members[2:] {
		if m.leads {
			i := s.write(m.id, 0)
			s.until("a write is committed", time.Second, func() bool { return s.committed(m.id, i) })
		}
	}
}

func without(ids []NodeID, id NodeID) []NodeID {
	var rest []NodeID
	for _, x := range ids {
		if x != id {
			rest = append(rest, x)
		}
	}
	return rest
}

// The leader's disk is stuck, and only node 2 has the entry on disk. The leader may
// forget it in a crash, and win the next election with node 3.
func TestLeadersNoteWaitsForItsDisk(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, func(x *settings) { x.cfg.Notes = true })
	s.pass(50 * ms)
	l := s.member(1)
	l.stuck = true
	s.bulk[1][3] = time.Hour
	i := s.write(1, 0)
	s.pass(20 * ms)
	require.GreaterOrEqual(t, s.member(2).durable, i)
	require.False(t, s.committed(2, i))
	l.stuck = false
	s.until("node 2 commits it by notes", 20*ms, func() bool { return s.committed(2, i) })
}

// A note that node 3 sent in an earlier term is about a log cut since.
func TestNotesOfAnotherTermDoNotCount(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, func(x *settings) { x.cfg.Notes = true })
	m := s.member(2)
	s.member(1).stop()
	s.until("another leads", 3*time.Second, func() bool { return s.member(2).leads || s.member(3).leads })
	s.pass(20 * ms)
	require.NoError(t, m.lease.StepNote(3, Note{Term: m.term - 1, Index: 1000}))
	require.Less(t, m.lease.Noted(3), Index(1000))
	require.NoError(t, m.lease.StepNote(3, Note{Term: m.term, Index: 1000}))
	require.Equal(t, Index(1000), m.lease.Noted(3))
}

// What a note says has no bound. A node that holds more than there can be is no reason to commit more, or nothing.
func TestNoteBeyondEveryLogReleasesWhatOthersHold(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2, 3}, func(x *settings) { x.cfg.Notes = true })
	m := s.member(2)
	s.pass(50 * ms)
	for _, id := range []NodeID{1, 3} {
		s.bulk[id][2] = time.Hour // no later news of a commit
		require.NoError(t, m.lease.StepNote(id, Note{Term: m.term, Index: math.MaxUint64, Newest: m.lease.rosters.newest().ID.Seq}))
	}
	m.lease.Appended(Entries{First: m.last() + 1, Count: 2})
	q := Releasable{UpTo: m.last() + 2, Durable: m.last() + 1, First: 1}
	require.Equal(t, m.last()+1, m.lease.Release(q))
}

// Reads at node 2 go on while node 3, another responder, is removed: dead, or deaf,
// and then renewing its leases until nobody grants leases any more.
func TestReadsGoOnWhileAnotherResponderDies(t *testing.T) {
	for name, fail := range map[string]func(*stage){
		"dead": func(s *stage) { s.member(3).stop() },
		"deaf": func(s *stage) {
			for id := range s.cut {
				s.cut[id][3] = true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 5, 5, []NodeID{2, 3}, func(x *settings) { x.cfg.DriftPPM = 50_000 })
			s.member(3).patient = time.Hour // pre-votes would keep its term from rising
			s.pass(100 * ms)
			fail(s)
			i := s.write(1, 0)
			for range 20_000 {
				s.pass(ms / 10)
				require.True(t, s.serves(2, Span{}), "at %v", s.now)
				require.True(t, s.serves(1, Span{}), "at %v", s.now)
			}
			require.True(t, s.committed(1, i))
			require.False(t, s.member(1).lease.rosters.newest().names(3))
		})
	}
}

// Node 4 becomes deaf and renews its leases, and so does node 5, when those of node 4 are about to end. Each
// holds up its own writes: the first write does not wait for the leases of node 5, which has the write.
func TestSecondDeafResponderHoldsUpNoWriteThatItHas(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{4, 5}, nil)
	c, l := s.set.cfg, s.member(1)
	deafen := func(id NodeID) (write Index) {
		s.member(id).patient = time.Hour // pre-votes would keep its term from rising
		for from := range s.cut {
			s.cut[from][id] = true
		}
		return s.write(1, 0)
	}
	s.pass(50 * ms)
	began := s.now
	first := deafen(4)
	s.until("node 4 is removed", c.Fail+rounds, func() bool { return !l.lease.rosters.newest().names(4) })
	s.pass(c.ElectionTimeout - c.Fail - 3*c.Heartbeat)
	deafen(5)
	s.until("node 5 is removed", c.Fail+rounds, func() bool { return !l.lease.rosters.newest().names(5) })
	require.False(t, s.committed(1, first), "too early for this test")
	s.until("the first write is committed", began+c.Fail+c.ElectionTimeout+rounds-s.now, func() bool { return s.committed(1, first) })
	s.until("all is committed", c.ElectionTimeout+rounds, func() bool { return s.committed(1, l.last()) })
}

// Nobody writes, and a responder dies. The responder is removed all the same,
// so that the next write does not wait for the dead.
func TestSilentResponderIsRemovedFromAnIdleGroup(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	s.member(2).stop()
	c := s.set.cfg
	s.until("it is no responder", c.Fail+c.Lease+rounds, s.member(1).lease.namesNobody)
	i := s.write(1, 0)
	s.until("a write is committed", 5*ms, func() bool { return s.committed(1, i) })
}

// A responder that fails again and again has to keep up longer each time before a roster names
// the responder again.
func TestResponderReturnsAfterALongerWhileEachTime(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{3}, nil)
	l := s.member(1).lease
	var back []time.Duration
	for range 4 {
		s.bulk[1][3] = time.Hour
		s.write(1, 0)
		s.until("it is removed", time.Second, func() bool { return !l.rosters.newest().names(3) })
		s.until("it serves no more", time.Second, func() bool { return !s.serves(3, Span{}) })
		s.heal()
		s.member(1).broadcast()
		back = append(back, s.until("it is back", 10*time.Second, func() bool { return s.serves(3, Span{}) }))
	}
	for i, d := range back {
		require.InDelta(t, float64(s.set.cfg.Fail<<i), float64(d), float64(80*ms), "after removal %d", i+1)
	}
	require.Equal(t, uint64(4), l.counts.Restored)
}

// A responder that falls silent again and again, and is there for less than it has to keep up,
// is removed once: its silence does not count, although the leader takes Fail to notice it.
func TestFalteringResponderIsNotNamedInItsSilence(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{3}, nil)
	l, f := s.member(1).lease, s.set.cfg.Fail
	for range 10 {
		s.sever([]NodeID{3}, []NodeID{1, 2})
		s.pass(3 * f / 2)
		s.heal()
		s.pass(7 * f / 10)
		require.False(t, l.rosters.newest().names(3))
	}
	require.Equal(t, uint64(1), l.counts.Removed)
	require.Zero(t, l.counts.Restored)
	s.until("it is back", 2*f, func() bool { return s.serves(3, Span{}) })
}

// A responder acknowledges nothing for four fifths of Fail, again and again, and all other times
// at once. Writes wait for each of the first falters, and then for few: the responder is left
// out for longer each time, and after good behaviour for as long as at first.
func TestWritesWaitForFewerAndFewerFaltersOfAResponder(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{3}, nil)
	l, f := s.member(1).lease, s.set.cfg.Fail
	falter := func(good time.Duration) (waited bool) {
		s.pass(good)
		began := s.now
		s.bulk[1][3] = time.Hour
		i := s.write(1, 0)
		s.until("the write is committed, or the responder is there again", f, func() bool {
			return s.committed(1, i) || s.now-began > 4*f/5
		})
		waited = s.now-began > f/4
		s.pass(began + 4*f/5 - s.now)
		s.heal()
		s.member(1).broadcast()
		s.until("it is committed", 20*ms, func() bool { return s.committed(1, i) })
		return waited
	}
	falters := func(cycles int, good time.Duration) (waited int) {
		for range cycles {
			if falter(good) {
				waited++
			}
		}
		return waited
	}
	require.Equal(t, forgiven+1, falters(forgiven+1, 2*f))
	require.Equal(t, uint64(1), l.counts.Removed)
	// Every falter but the first few comes while the responder keeps up and is not named yet.
	require.LessOrEqual(t, falters(200, 2*f), 2)
	require.LessOrEqual(t, l.counts.Removed, uint64(3))
	// The times without falters are longer than the longest backoff: a falter costs one wait.
	for l.peer(3).follow.fit.backoff < maxBackoff*f {
		removed := l.counts.Removed
		require.True(t, falter(2*l.peer(3).follow.fit.backoff))
		require.Equal(t, removed+1, l.counts.Removed)
	}
	s.until("it is back", maxBackoff*f+f, func() bool { return s.serves(3, Span{}) })
	s.pass((redeemFails + 1) * f)
	removed := l.counts.Removed
	require.Equal(t, forgiven+1, falters(forgiven+1, f))
	require.Equal(t, removed+1, l.counts.Removed, "two falters are forgiven again")
	s.until("it is back", 2*f, func() bool { return s.serves(3, Span{}) })
}

// Two falters within a while are forgiven, and so is each that comes alone.
func TestRareFaltersRemoveNobody(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{3}, nil)
	l, f := s.member(1).lease, s.set.cfg.Fail
	for n := range 9 {
		s.bulk[1][3] = time.Hour
		s.write(1, 0)
		s.pass(4 * f / 5)
		s.heal()
		s.member(1).broadcast()
		s.pass(2 * f)
		if n%2 == 1 {
			s.pass(faltersFails * f)
		}
	}
	require.Zero(t, l.counts.Removed)
	require.True(t, s.serves(3, Span{}))
}

// The leader's link falters, so that no majority acknowledges: the responder is not to blame.
func TestWaitsForTheMajorityAreNoFaltersOfAResponder(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{3}, nil)
	l, f := s.member(1).lease, s.set.cfg.Fail
	for range 9 {
		s.bulk[1][2], s.bulk[1][3] = time.Hour, time.Hour
		i := s.write(1, 0)
		s.pass(4 * f / 5)
		require.False(t, s.committed(1, i))
		s.heal()
		s.member(1).broadcast()
		s.pass(f)
	}
	require.Zero(t, l.counts.Removed)
}

// No promise outlives the time after which its grantor might vote anyway, so
// leases make no election later.
func TestPromisesEndWithPatience(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, func(x *settings) { x.cfg.Lease = 2 * time.Second })
	s.pass(300 * ms)
	s.member(1).stop()
	now := s.now
	for _, m := range s.members[1:] {
		until := m.lease.BoundUntil(m.id)
		require.LessOrEqual(t, until, m.heard.after(s.set.cfg.ElectionTimeout))
	}
	s.until("another leads", 2*s.set.cfg.ElectionTimeout+50*ms, func() bool { l := s.leader(); return l != nil && l.id != 1 })
	t.Logf("after %v", s.now-now)
}

// A node that missed an announcement gets the roster whole, however long after,
// and not only its number.
func TestRosterIsAnnouncedUntilItIsKnown(t *testing.T) {
	s := newStage(t, 4, 3, []NodeID{2}, nil)
	s.sever([]NodeID{4}, []NodeID{1, 2, 3})
	l := s.member(1).lease
	require.NoError(t, l.SetWanted(s.member(1).reading(), []Want{{Span: Span{End: "m"}, Nodes: []NodeID{2}}}))
	s.pass(100 * ms)
	s.heal()
	s.until("the learner knows it", 200*ms, func() bool {
		r := s.member(4).lease.rosters.newest()
		return r.ID == l.rosters.newest().ID && r.sameAs(l.rosters.newest())
	})
}

// A burst of wishes, with as many and as long keys as there may be, has more rosters in use than a message takes. They
// would be lost together, again and again, and a dead responder of the first would hold up writes without end.
func TestBurstOfWishesIsAnnounced(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(1)
	for i := range 2 * MaxRosters {
		var wanted []Want
		for k := range MaxSpans {
			key := fmt.Sprintf("%0*d", MaxKey-1, k)
			wanted = append(wanted, Want{Span: Span{Start: key + "a", End: key + "b"}, Nodes: []NodeID{2, NodeID(10 + i)}})
		}
		require.NoError(t, m.lease.SetWanted(m.reading(), wanted))
	}
	require.Len(t, m.lease.rosters.list, MaxRosters)
	s.member(2).stop()
	i, c := s.write(1, 0), s.set.cfg
	s.until("the write is committed", c.Fail+c.Lease+c.Heartbeat+rounds, func() bool { return s.committed(1, i) })
	require.Equal(t, m.lease.rosters.newest().ID, s.member(3).lease.rosters.newest().ID)
}

// In peace two nodes of which one holds leases of the other exchange a message each
// in a heartbeat interval: requests and answers, in both directions, ride together.
func TestLeasesTakeAMessageAPeerAndHeartbeat(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	s.pass(200 * ms)
	s.messages = 0
	const beats = 50
	s.pass(beats * s.set.cfg.Heartbeat)
	const pairs = 9 // of the 10 pairs of nodes, 4 and 5 have nothing to say to each other
	require.LessOrEqual(t, s.messages, (beats+1)*2*pairs)
	require.GreaterOrEqual(t, s.messages, (beats-6)*2*pairs)
}

// A node that hears its leader no more, and is bound to it by a promise, does not campaign: rule L5.
func TestNodeWithPromisesOutDoesNotCampaign(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(3)
	require.False(t, m.lease.MayCampaign(m.reading()))
	term := m.term
	m.campaign(false)
	require.Equal(t, term, m.term)
}
