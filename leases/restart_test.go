// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// announcement returns a leader's present announcement to another node, as the network
// may bring the message again long after.
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

// Node 2, a responder, is cut off from the leader and asks node 3 on. The leader names node
// 2 no more; 1 and 3 adopt the new roster, and writes no longer wait for node 2. Node 3 is
// restarted, and the network brings node 3 the older roster once more. By adopting the older
// roster, node 3 would grant node 2 a lease, and with 2 itself be a majority.
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

// A node has seen a later term, and its disk has not. After a crash the node
// would know nothing of its messages in the later term, and would not even ask.
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

// Node 3 is restarted with a clock that is good enough by its own settings, and allows no lease by those of the others. It
// adopts rosters all the same, so that the leader waits for a dead responder no longer than otherwise.
func TestRestartedNodeWhoseClockAllowsNoLeaseAdopts(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m, l, c := s.member(3), s.member(1).lease, s.set.cfg
	m.stop()
	m.start(false)
	m.lease.cfg.Heartbeat, m.lease.cfg.Resolution = 10*ms, 130*ms
	s.pass(2 * c.Lease)
	require.Positive(t, l.counts.Refused)
	require.Less(t, l.peer(3).holding.until, s.member(1).reading(), "it grants the leader nothing")
	s.member(2).stop()
	i := s.write(1, 0)
	s.until("the write is committed", c.Fail+c.Lease+rounds, func() bool { return s.committed(1, i) })
}
