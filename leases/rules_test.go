// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of this file are schedules that need one rule each, and that seeds
// come by too rarely.

// announcement returns what a leader announces to another at present, as the network may
// bring it again long after.
func (s *stage) announcement(from, to NodeID) func() {
	l := s.member(from).lease
	list, _ := l.rosters.inUse()
	m := Message{Term: l.term, News: News{Newest: l.rosters.newest().ID.Seq, Least: l.rosters.least}}
	for _, r := range list {
		m.Lists = append(m.Lists, *r)
	}
	return func() {
		s.member(to).receive(func() {
			x := s.member(to)
			require.NoError(s.t, x.lease.Step(x.reading(), from, m))
		})
	}
}

// Node 2, a responder, is cut off from the leader and asks node 3 on. The leader
// names it no more; 1 and 3 adopt that, and writes no longer wait for it. Node 3 is
// restarted, and the network brings it the older roster once more. Were it to adopt that, it
// would grant node 2 a lease, and that is a majority with 2 itself.
func TestRestartedNodeAdoptsNoOlderRoster(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	older := s.announcement(1, 3)
	for _, m := range s.members {
		m.patient = time.Hour // pre-votes would keep their terms from rising
	}
	s.sever([]NodeID{1}, []NodeID{2})
	s.until("node 2 is named no more", time.Second, func() bool { return s.member(1).lease.isQuiet() })
	require.Equal(t, Seq(3), s.member(3).lease.adopted.ID.Seq)
	s.member(3).stop()
	s.sever([]NodeID{1}, []NodeID{3})
	s.member(3).start(false)
	s.member(3).patient = time.Hour
	s.member(3).lease.Turned(s.member(3).reading(), Turn{Term: 1, Leader: 1})
	s.pass(s.set.cfg.Lease + 10*ms) // the quarantine
	older()
	for range 100 {
		s.member(3).lease.Heard(s.member(3).reading()) // appends come through, answers do not
		s.pass(ms)
		require.False(t, s.serves(2, keyOf(0)), "node 2 would answer, and the leader does not wait for it")
	}
	require.Nil(t, s.member(3).lease.adopted)
	s.heal()
	s.until("the leader answers", time.Second, func() bool {
		r := s.member(3).lease.adopted
		return r != nil && r.ID.Seq >= 3
	})
}

// The leader has told a restarted node that roster 3 is its newest, and the roster
// itself was lost. Rosters 1 and 2 come late. The node adopts neither.
func TestRestartedNodeWaitsForTheNewestRoster(t *testing.T) {
	n := started(Config{ID: 3, Boot: 9, ElectionTimeout: time.Second}, Start{Now: 1, Term: 5})
	n.Configured(1, Members{Voters: Voters{Incoming: []NodeID{1, 2, 3}}})
	n.Turned(1, Turn{Term: 5, Leader: 1})
	var list []Roster
	for q := Seq(1); q <= 3; q++ {
		r := *roster(q, Assignment{Responders: []Responder{{Node: 2}}})
		r.ID.Term = 5
		list = append(list, r)
	}
	out := n.Poll(2)
	require.Len(t, out, 1, "it asks the leader, also in quarantine")
	ask := out[0].Message.Request
	require.NoError(t, n.Step(3, 1, Message{Term: 5, Answer: Answer{Nonce: ask}, News: News{Newest: 3, Least: 1}}))
	late := n.restart.until.after(1)
	require.NoError(t, n.Step(late, 1, Message{Term: 5, News: News{Newest: 2, Least: 1}, Lists: list[:2]}))
	require.Equal(t, Seq(2), n.rosters.newest().ID.Seq)
	require.Nil(t, n.adopted)
	require.NoError(t, n.Step(late, 1, Message{Term: 5, News: News{Newest: 3, Least: 1}, Lists: list}))
	require.Equal(t, Seq(3), n.adopted.ID.Seq)
}

// Node 2 asked node 3 in two runs. Node 3 grants the second run nothing until what it
// promised the first has ended: a revocation can name a nonce of one run only, and an
// answer to the other run would count after the confirmation.
func TestTwoRunsOfANodeHoldNoPromisesSideBySide(t *testing.T) {
	node := func(id NodeID, boot Boot) *Node {
		n := started(Config{ID: id, Boot: boot, ElectionTimeout: time.Second}, Start{Now: 1, Term: 1, Empty: true})
		n.Configured(1, Members{Voters: Voters{Incoming: []NodeID{1, 2, 3}}})
		n.Turned(1, Turn{Term: 1, Leader: 1})
		n.Heard(1)
		return n
	}
	tell := func(n *Node, at Instant, newest Seq) {
		list := []Roster{*roster(1, Assignment{Responders: []Responder{{Node: 2}}}), *roster(2)}
		require.NoError(t, n.Step(at, 1, Message{Term: 1, News: News{Newest: newest, Least: 1}, Lists: list[:newest]}))
	}
	to := func(n *Node, at Instant, id NodeID) (m Message) {
		for _, o := range n.Poll(at) {
			if o.To == id {
				m = o.Message
			}
		}
		return m
	}
	g, a, b := node(3, 3), node(2, 10), node(2, 11)
	tell(g, 2, 1)
	tell(a, 2, 1)
	require.NoError(t, g.Step(3, 2, to(a, 3, 3)))
	require.Positive(t, to(g, 3, 2).Answer.For)
	overtaken := to(a, Instant(time.Second)/5, 3) // a request that comes late, and the node is restarted
	tell(b, 4, 1)
	require.NoError(t, g.Step(5, 2, to(b, 4, 3)))
	answer := to(g, 5, 2) // which comes late, too
	require.NoError(t, g.Step(6, 2, overtaken))
	to(g, 6, 2)
	tell(g, 7, 2)
	revoke := to(g, 7, 2)
	require.False(t, revoke.Revoke.isNone())
	require.NoError(t, b.Step(8, 3, revoke))
	require.NoError(t, g.Step(9, 2, to(b, 8, 3)))
	if !answer.isEmpty() {
		require.NoError(t, b.Step(10, 3, answer))
	}
	require.Equal(t, Seq(2), g.adopted.ID.Seq)
	require.Zero(t, b.peer(3).holding.until, "node 3 has adopted a roster without node 2, and node 2 counts its lease")
}

// A node has seen a later term, and its disk has not. After a crash it would know
// nothing of what it had said in that term, and would not even ask.
func TestNothingIsSaidBeforeTheTermIsDurable(t *testing.T) {
	cfg := Config{ID: 3, Boot: 1, ElectionTimeout: time.Second, Notes: true}
	n := started(cfg, Start{Now: 1, Term: 1, Empty: true})
	n.Configured(1, Members{Voters: Voters{Incoming: []NodeID{1, 2, 3}}})
	n.Turned(2, Turn{Term: 2, Leader: 1})
	n.Heard(2)
	r := Roster{ID: RosterID{Term: 2, Seq: 1}, Leader: 1, Voters: n.members.Voters,
		Spans: []Assignment{{Responders: []Responder{{Node: 2}}}}}
	announce := Message{Term: 2, Lists: []Roster{r}, News: News{Newest: 1, Least: 1}, Request: Nonce{Boot: 1, Counter: 1}}
	require.NoError(t, n.Step(3, 1, announce))
	require.NoError(t, n.Step(3, 2, Message{Term: 2, Request: Nonce{Boot: 2, Counter: 1}}))
	for _, o := range n.Poll(4) {
		require.Zero(t, o.Message.Answer.For)
		require.Zero(t, o.Message.Report.Adopted)
	}
	x, to := n.OwnNote(1)
	require.Zero(t, x)
	require.Empty(t, to)
	n.TermDurable(2)
	out := n.Poll(5)
	require.Len(t, out, 2)
	require.Equal(t, Seq(1), out[0].Message.Report.Adopted)
	require.Positive(t, out[0].Message.Answer.For)
	require.Positive(t, out[1].Message.Answer.For)
	x, to = n.OwnNote(1)
	require.Equal(t, Note{Term: 2, Index: 1}, x)
	require.Equal(t, []NodeID{2}, to)
}

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

// A note that node 3 sent in an earlier term speaks of a log that has been cut since.
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

// Reads at node 2 go on while node 3, another responder, is removed: dead, or deaf,
// so that it renews its leases until nobody grants them any more.
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

// Nobody writes, and a responder dies. It is removed all the same, so that the
// first write that comes does not wait for it.
func TestSilentResponderIsRemovedFromAnIdleGroup(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	s.member(2).stop()
	c := s.set.cfg
	s.until("it is no responder", c.Fail+c.Lease+rounds, s.member(1).lease.namesNobody)
	i := s.write(1, 0)
	s.until("a write is committed", 5*ms, func() bool { return s.committed(1, i) })
}

// A responder that fails again and again has to keep up longer each time before it is named again.
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

// Without leases a transfer takes some messages. It takes no longer with them,
// and not the time that promises need to end.
func TestHandingOverGivesLeasesAway(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	s.pass(100 * ms)
	m := s.member(1)
	m.heir, m.handing = 4, m.reading().after(time.Hour)
	m.lease.HandOver(m.reading(), true)
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
	m.lease.HandOver(m.reading(), true)
	mayHandOver := func() bool { return m.lease.MayHandOver(2) }
	require.False(t, mayHandOver())
	s.until("nothing is in the way", time.Second, mayHandOver)
	require.False(t, s.serves(1, Span{}))
	require.False(t, s.serves(2, Span{}))
	m.lease.HandOver(m.reading(), false)
	s.until("all is as before", time.Second, func() bool { return s.serves(1, Span{}) && s.serves(2, Span{}) })
}

// Leases are switched off: nobody reads by them, under the next leader neither, until they are switched on.
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
	s.until("it knows, too", time.Second, next.lease.IsRetired)
	s.pass(500 * ms)
	require.False(t, s.serves(next.id, Span{}))
	require.NoError(t, next.lease.Retire(next.reading(), false))
	s.until("it reads again", time.Second, func() bool { return s.serves(next.id, Span{}) })
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

// Node 4 was cut off for so long that it is bound to nobody. At the leader's wish,
// who did not wait, it campaigns. The others hear the leader and vote for node 4
// all the same, were it not for what they have promised to responder 2.
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

// The first leader of a group that was all restarted waits out the quarantine, and then all goes on.
func TestRestartOfAllNodes(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	began := s.now
	for _, m := range s.members {
		m.stop()
		m.start(false)
	}
	s.until("a leader", 5*time.Second, func() bool { return s.leader() != nil })
	require.GreaterOrEqual(t, s.now-began, s.set.cfg.Lease-ms)
	s.until("node 2 is a responder again, or leads", 5*time.Second, func() bool { return s.serves(2, Span{}) })
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
	l.lease.HandOver(l.reading(), true)
	l.flush()
	s.until("the heir leads", 100*ms, func() bool { return s.member(4).leads })
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

// A responder that stops gives its leases back, and no write waits for them to end.
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
