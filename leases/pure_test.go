// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stateOf writes all of a node's state down, pointers followed.
func stateOf(n *Node) string {
	var b strings.Builder
	flat := *n
	flat.peers, flat.leading, flat.tuner, flat.adopted, flat.rosters.list = nil, nil, nil, nil, nil
	fmt.Fprintf(&b, "%+v\n", flat)
	for _, p := range n.peers {
		q := *p
		q.promise.roster = nil
		fmt.Fprintf(&b, "%+v on %p\n", q, p.promise.roster)
	}
	for _, r := range n.rosters.list {
		fmt.Fprintf(&b, "%+v\n", *r)
	}
	fmt.Fprintf(&b, "%p %+v %+v\n", n.adopted, n.leading, n.tuner)
	return b.String()
}

// Questions change nothing, whoever is asked, and however late the clock is.
func TestQuestionsChangeNothing(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		w := newWorld(seed, options{})
		w.begin()
		w.disturb()
		for range 20 {
			w.run(50 * time.Millisecond)
			for _, m := range w.members {
				if !m.alive {
					continue
				}
				n, before := m.lease, stateOf(m.lease)
				for _, now := range []Instant{0, m.reading(), m.reading().after(time.Hour)} {
					n.MayVote(now, 1)
					n.MayCampaign(now)
					n.BoundUntil(2)
					n.IsStable(now, Span{})
					n.ReadIndex(now, keyOf(1))
					n.Status(now)
				}
				n.Committable(m.last())
				n.MayChange()
				n.MayHandOver(2)
				n.LeaderIndex(Span{})
				n.Permit(m.permit)
				n.OwnNote(m.durable)
				n.Noted(3)
				n.Release(Releasable{UpTo: m.last(), Durable: m.durable, First: 1})
				if n.leading != nil {
					n.IsRetired()
				}
				require.Equal(t, before, stateOf(n), "seed %d, node %d", seed, m.id)
			}
		}
		require.Empty(t, w.failure)
	}
}

// One seed tells one story, whatever order maps have.
func TestSeedsTellTheSameStoryAgain(t *testing.T) {
	for seed := uint64(4); seed <= 12; seed += 4 {
		story := func() string {
			w := runSeed(seed, options{verbose: true})
			for _, m := range w.members {
				w.logf("node %d at term %d: log to %d, committed %d, %+v", m.id, m.term, m.last(), m.commit, m.lease.counts)
			}
			return strings.Join(w.trace, "\n")
		}
		first, again := story(), story()
		require.True(t, first == again, "seed %d", seed)
	}
}

// The questions of the paths of reads and commits take no memory.
func TestQuestionsTakeNoMemory(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, func(x *settings) { x.cfg.Notes, x.spans = true, true })
	for _, id := range []NodeID{1, 2} {
		m := s.member(id)
		span, now := keyOf(1), m.reading()
		q := Releasable{UpTo: m.last(), Durable: m.durable, First: 1}
		for what, ask := range map[string]func(){
			"ReadIndex":   func() { m.lease.ReadIndex(now, span) },
			"LeaderIndex": func() { m.lease.LeaderIndex(span) },
			"Committable": func() { m.lease.Committable(m.last()) },
			"MayVote":     func() { m.lease.MayVote(now, 3) },
			"Poll":        func() { m.lease.Poll(m.lease.latest) },
			"Noted":       func() { m.lease.Noted(3) },
			"Permit":      func() { m.lease.Permit(m.permit) },
			"a permit":    func() { m.permit.ReadIndex(now, span) },
		} {
			ask()
			require.Zero(t, testing.AllocsPerRun(100, ask), "%s at node %d", what, id)
		}
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { m.lease.Release(q) }), 1.0)
	}
}

// What cannot be is refused with an error, counted, and changes nothing else.
func TestBadNewsIsRefused(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(2)
	n, now := m.lease, m.reading()
	counts := n.counts
	n.advance(now)
	before := stateOf(n)
	other := *roster(5)
	bad := func(from NodeID, x Message) {
		require.ErrorIs(t, n.Step(now, from, x), ErrMalformed)
	}
	bad(1, Message{})
	bad(0, Message{Term: m.term})
	bad(2, Message{Term: m.term})
	bad(3, Message{Term: 1, News: News{Newest: 5, Least: 5}, Lists: []Roster{other}}) // the leader of which is 1
	require.ErrorIs(t, n.StepNote(1, Note{}), ErrMalformed)
	require.NoError(t, n.Step(now, 9, Message{Term: m.term, Request: Nonce{Boot: 1, Counter: 1}}))
	require.NoError(t, n.StepNote(9, Note{Term: m.term, Index: 1}))
	require.Equal(t, counts.Refused+5, n.counts.Refused)
	require.Equal(t, counts.Strangers+2, n.counts.Strangers)
	n.counts = counts
	require.Equal(t, before, stateOf(n))
	// A revocation of a request that was never made would void all to come.
	require.NoError(t, n.Step(now, 1, Message{Term: m.term, Revoke: Nonce{Boot: n.cfg.Boot, Counter: n.counter + 1}}))
	require.True(t, s.serves(2, Span{}))
	require.ErrorIs(t, n.SetWanted(now, nil), ErrNotLeader)
	l := s.member(1).lease
	require.ErrorIs(t, l.SetWanted(now, []Want{{Nodes: []NodeID{2}}, {Nodes: []NodeID{3}}}), ErrMalformed)
	require.NoError(t, l.SetWanted(s.member(1).reading(), []Want{{Nodes: []NodeID{3, 2, 3}}}))
	require.Equal(t, []NodeID{2, 3}, l.wish.wanted[0].Nodes)
	require.Equal(t, Instant(1<<63-1), Instant(1<<62).after(1<<62))
}
