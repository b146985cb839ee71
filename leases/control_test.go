// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Without leases a transfer takes some messages. A transfer with leases takes
// no longer: not the time until promises end.
func TestHandingOverGivesLeasesAway(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	s.pass(100 * ms)
	m := s.member(1)
	m.heir, m.handing = 4, m.reading().after(time.Hour)
	m.lease.HandOver(m.reading(), true, false)
	m.flush()
	took := s.until("the heir leads", time.Second, func() bool { return s.member(4).leads })
	require.Less(t, took, 40*ms)
	require.False(t, s.serves(1, Span{}))
	s.until("the responders serve under it", time.Second, func() bool { return s.serves(2, Span{}) && s.serves(3, Span{}) })
}

// A leader that does not hand over after all names its responders again.
func TestHandingOverMayBeCalledOff(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(1)
	m.lease.HandOver(m.reading(), true, false)
	mayHandOver := func() bool { return m.lease.MayHandOver(2) }
	require.False(t, mayHandOver())
	s.until("nothing is in the way", time.Second, mayHandOver)
	require.False(t, s.serves(1, Span{}))
	require.False(t, s.serves(2, Span{}))
	m.lease.HandOver(m.reading(), false, false)
	s.until("all is as before", time.Second, func() bool { return s.serves(1, Span{}) && s.serves(2, Span{}) })
}

// Leases are switched off: no node reads by leases, nor under the next leader, until leases are
// switched on.
func TestRetiredLeasesStayOffUnderTheNextLeader(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(1)
	require.ErrorIs(t, s.member(2).lease.Retire(s.member(2).reading(), true), ErrNotLeader)
	require.NoError(t, m.lease.Retire(m.reading(), true))
	require.False(t, m.lease.IsRetired())
	require.False(t, s.serves(1, Span{}), "the leader stops at once")
	s.until("all know", time.Second, m.lease.IsRetired)
	require.False(t, s.serves(2, Span{}))
	m.stop()
	var next *member
	s.until("another leads", 3*time.Second, func() bool { next = s.leader(); return next != nil })
	s.pass(500 * ms)
	require.False(t, s.serves(next.id, Span{}))
	require.False(t, next.lease.IsRetired(), "node 1 may lead next, and has not heard of it since its start")
	m.start(false)
	s.until("everybody knows", 3*time.Second, next.lease.IsRetired)
	require.False(t, s.serves(next.id, Span{}))
	require.NoError(t, next.lease.Retire(next.reading(), false))
	s.until("it reads again", time.Second, func() bool { return s.serves(next.id, Span{}) })
}

// Node 4 was cut off until no promise binds node 4. At the wish of the leader,
// without a wait, node 4 campaigns. The others hear the leader and would vote for
// node 4 all the same, but for their promises to responder 2.
func TestVotesAtTheLeadersWishHeedPromises(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2}, nil)
	m := s.member(4)
	m.patient = time.Hour
	s.sever([]NodeID{4}, []NodeID{1, 2, 3, 5})
	s.until("node 4 is bound to nobody", time.Second, func() bool { return m.lease.MayCampaign(m.reading()) })
	s.heal()
	require.Equal(t, s.member(1).last(), m.last())
	m.receive(func() { m.campaign(true) })
	require.True(t, m.runs)
	for range 200 {
		s.pass(ms / 10) // all invariants are looked at
		require.False(t, m.leads)
	}
	now := s.member(3).reading()
	require.False(t, s.member(3).lease.MayVote(now, 4))
	until := s.member(3).lease.BoundUntil(4)
	require.Greater(t, until, now)
	require.True(t, s.member(3).lease.MayVote(until, 4))
}

// Nobody is a responder, and most voters are replaced and gone. The leader hands
// over without waiting for those who voted before.
func TestHandingOverAfterVotersWereReplaced(t *testing.T) {
	s := newStage(t, 5, 3, nil, nil)
	l := s.member(1)
	l.wantChange(Members{Voters: Voters{Incoming: []NodeID{1, 4, 5}, Outgoing: []NodeID{1, 2, 3}}})
	s.until("the configuration is left", time.Second, func() bool { return !l.conf.joint() && l.conf.Voters.has(4) })
	s.pass(50 * ms)
	s.member(2).stop()
	s.member(3).stop()
	l.heir, l.handing = 4, l.reading().after(time.Hour)
	l.lease.HandOver(l.reading(), true, false)
	l.flush()
	s.until("the heir leads", 100*ms, func() bool { return s.member(4).leads })
}

// A responder that stops gives its leases back, and no write waits for the leases
// to end.
func TestStoppingResponderGivesItsLeasesBack(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	s.pass(100 * ms)
	m := s.member(2)
	m.lease.GiveUp()
	m.flush()
	s.pass(2 * ms)
	m.stop()
	require.True(t, s.member(1).lease.MayVote(s.member(1).reading(), 3))
	i := s.write(1, 0)
	s.until("the write is committed", s.set.cfg.Fail+rounds, func() bool { return s.committed(1, i) })
}

// A request was under way when its sender gave its leases back. It binds nobody.
func TestLateRequestOfALeaseGivenBackBindsNobody(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	g, p := s.member(3), s.member(2)
	s.slow[2][3] = 30 * ms
	s.pass(100 * ms) // requests are under way
	p.lease.GiveUp()
	confirm := p.lease.peer(3).confirm
	require.Greater(t, confirm.Counter, g.lease.peer(2).promise.nonce.Counter)
	require.NoError(t, g.lease.Step(g.reading(), 2, Message{Term: p.term, Confirm: confirm}))
	s.sever([]NodeID{2}, []NodeID{1, 3}) // but what is under way arrives
	s.pass(40 * ms)
	require.False(t, g.lease.peer(2).promise.binds(g.reading()))
}
