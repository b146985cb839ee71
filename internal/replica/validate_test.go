// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// received makes a message from node 2 to node 1.
func received(typ pb.MessageType, change func(m *pb.Message)) wire.Message {
	m := &pb.Message{Type: typ.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(9))}
	if change != nil {
		change(m)
	}
	return wire.Message{Group: 7, From: 2, To: 1, Body: wire.Raft{Message: m}}
}

func TestBadMessagesAreRefused(t *testing.T) {
	entry := func(term, index uint64) *pb.Entry { return &pb.Entry{Term: new(term), Index: new(index)} }
	app := func(entries ...*pb.Entry) func(m *pb.Message) {
		return func(m *pb.Message) { m.LogTerm, m.Index, m.Entries = new(uint64(5)), new(uint64(10)), entries }
	}
	cases := map[string]struct {
		m    wire.Message
		want string
	}{
		"proposal":        {received(pb.MsgProp, nil), "does not come from peers"},
		"transfer":        {received(pb.MsgTransferLeader, nil), "does not come from peers"},
		"hup":             {received(pb.MsgHup, nil), "does not come from peers"},
		"storage":         {received(pb.MsgStorageAppendResp, nil), "does not come from peers"},
		"unknown type":    {received(pb.MessageType(99), nil), "does not come from peers"},
		"other sender":    {received(pb.MsgHeartbeat, func(m *pb.Message) { m.From = new(uint64(3)) }), "it goes from 3 to 1"},
		"other receiver":  {received(pb.MsgHeartbeat, func(m *pb.Message) { m.To = new(uint64(3)) }), "it goes from 2 to 3"},
		"no term":         {received(pb.MsgAppResp, func(m *pb.Message) { m.Term = nil }), "it has no term"},
		"last term":       {received(pb.MsgVote, func(m *pb.Message) { m.Term = new(uint64(math.MaxUint64)) }), "no term can follow"},
		"responses":       {received(pb.MsgAppResp, func(m *pb.Message) { m.Responses = []*pb.Message{{}} }), "carries what"},
		"gap":             {received(pb.MsgApp, app(entry(5, 12))), "entry 1 of 1 has index 12, want 11"},
		"nil entry":       {received(pb.MsgApp, app(entry(5, 11), nil)), "entry 2 of 2 is missing"},
		"term falls":      {received(pb.MsgApp, app(entry(4, 11))), "has term 4, want 5 to 9"},
		"term rises":      {received(pb.MsgApp, app(entry(10, 11))), "has term 10, want 5 to 9"},
		"log term":        {received(pb.MsgApp, func(m *pb.Message) { m.LogTerm = new(uint64(10)) }), "later than its own"},
		"last index":      {received(pb.MsgApp, func(m *pb.Message) { m.Index = new(uint64(math.MaxUint64)) }), "no entries can follow"},
		"read":            {received(pb.MsgReadIndex, nil), "it has 0 contexts, want 1"},
		"round":           {received(pb.MsgHeartbeatResp, func(m *pb.Message) { m.Context = []byte("abc") }), "context of 3 bytes"},
		"entries":         {received(pb.MsgVote, func(m *pb.Message) { m.Entries = []*pb.Entry{entry(1, 1)} }), "it carries entries"},
		"commit":          {received(pb.MsgHeartbeat, func(m *pb.Message) { m.Commit = new(uint64(50)) }), "was this node's log lost?"},
		"units' term":     {received(64, nil), "it has term 9 and 0 entries, want no term"},
		"units missing":   {received(64, func(m *pb.Message) { m.Term, m.Entries = nil, []*pb.Entry{nil} }), "it has term 0 and 1 entries, want no term, and none that is missing"},
		"question's term": {received(65, nil), "want no term"},
		"other group":     {wire.Message{Group: 8, From: 2, To: 1, Body: wire.Transfer{}}, "in group 8"},
		"to another":      {wire.Message{Group: 7, From: 2, To: 3, Body: wire.Transfer{}}, "to node 3"},
		"from itself":     {wire.Message{Group: 7, From: 1, To: 1, Body: wire.Transfer{}}, "from node 1"},
		"chunk":           {wire.Message{Group: 7, From: 2, To: 1, Body: wire.Chunk{}}, "a chunk does not belong here"},
		"snapshot itself": {received(pb.MsgSnap, nil), "does not come from peers"},
	}
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		for name, tc := range cases {
			before := c.nodes[1].r.count.BadMessages
			err := c.nodes[1].r.Receive(tc.m)
			require.ErrorIs(t, err, ErrBadMessage, name)
			require.ErrorContains(t, err, tc.want, name)
			require.Equal(t, before+1, c.nodes[1].r.count.BadMessages)
		}
		// A leader hears of entries that it does not have.
		c.elect(1)
		term := c.nodes[1].r.state.Term
		err := c.nodes[1].r.Receive(received(pb.MsgAppResp, func(m *pb.Message) { m.Term, m.Index = new(term), new(uint64(99)) }))
		require.ErrorContains(t, err, "this log ends at")
	})
}

// A heartbeat is compared with the log as the append before it, in the same turn,
// left it: that may have cut a tail off.
func TestHeartbeatBehindCut(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		r := c.elect(1).r
		commit, logTerm := r.last, r.state.Term
		r.cfg.EagerBatches = 6
		c.lose = func(wire.Message) bool { return true }
		for range 5 {
			c.propose(1, "nobody else hears of this")
			c.settle()
		}
		require.Equal(t, commit+5, r.last)
		term := logTerm + 1
		require.NoError(t, r.Receive(received(pb.MsgApp, func(m *pb.Message) {
			m.Term, m.Index, m.LogTerm = &term, &commit, &logTerm
			m.Entries = []*pb.Entry{{Term: &term, Index: new(commit + 1)}}
		})))
		err := r.Receive(received(pb.MsgHeartbeat, func(m *pb.Message) { m.Term, m.Commit = &term, new(commit+5) }))
		require.ErrorIs(t, err, ErrBadMessage)
	})
}

func TestBadProposalsAreRefused(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	n := c.elect(1)
	good := wire.CommandID{Origin: 2, Boot: 1, Sequence: 1}
	number := uint64(0)
	verdict := func(p wire.Proposal) wire.Verdict {
		number++
		p.Number = number
		refused := n.r.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: p})
		for range 2 { // what was accepted is answered at the next tick
			out := n.r.Flush(c.now)
			n.appends, n.applies = append(n.appends, out.Appends...), append(n.applies, out.Applies...)
			for _, m := range out.Sends {
				if v, ok := m.Body.(wire.Verdict); ok {
					require.Equal(t, v.Outcome == wire.Malformed, errors.Is(refused, ErrBadMessage))
					return v
				}
			}
			n.r.Tick(c.now)
		}
		t.Fatal("no verdict")
		return wire.Verdict{}
	}
	term := n.r.state.Term
	batch := encodeBatch(good, 1, [][]byte{[]byte("x")})
	for want, p := range map[string]wire.Proposal{
		"proposal 3/1/1 from node 2":         {ID: wire.CommandID{Origin: 3, Boot: 1, Sequence: 1}, Term: term, Data: batch},
		"proposal 2/1/2 contains 2/1/1":      {ID: wire.CommandID{Origin: 2, Boot: 1, Sequence: 2}, Term: term, Data: batch},
		"no data":                            {ID: good, Term: term},
		"it begins with 0x99":                {ID: good, Term: term, Data: []byte{0x99}},
		"configuration change without an id": {ID: good, Term: term, ConfChange: true},
		"configuration change: proto":        {ID: good, Term: term, ConfChange: true, Data: []byte{0xff}},
	} {
		v := verdict(p)
		require.Equal(t, wire.Malformed, v.Outcome, want)
		require.Contains(t, v.Reason, want)
	}
	v := verdict(wire.Proposal{ID: good, Term: term + 1, Data: batch})
	require.Equal(t, wire.NotLeader, v.Outcome)
	require.Equal(t, uint64(1), v.Leader)
	far := wire.CommandID{Origin: 2, Boot: 1, Sequence: maxWindow + 2}
	v = verdict(wire.Proposal{ID: far, Term: term, Data: encodeBatch(far, 1, nil)})
	require.Equal(t, wire.Busy, v.Outcome, "the table of origins is bounded")
	before := n.r.last
	v = verdict(wire.Proposal{ID: good, Term: term, Data: batch})
	require.Equal(t, wire.Accepted, v.Outcome)
	require.Equal(t, before+1, v.Index)
	require.Equal(t, before+1, n.r.last)
}

func TestBadSnapshotsAreRefused(t *testing.T) {
	c := newCluster(t, Upstream, 1, 2, 3)
	good := hostState{at: logMark{term: 2, index: 40}, conf: pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2, 3}}), origins: originTable{}}
	header := func(h hostState, change func(m *pb.Message)) *pb.Message {
		m := received(pb.MsgSnap, func(m *pb.Message) {
			m.Snapshot = &pb.Snapshot{Metadata: h.meta(), Data: h.encode()}
		}).Body.(wire.Raft).Message
		if change != nil {
			change(m)
		}
		return m
	}
	impossible := good
	impossible.conf = pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1}, Learners: []uint64{1}})
	for want, m := range map[string]*pb.Message{
		"it is a MsgApp from 2":    header(good, func(m *pb.Message) { m.Type = pb.MsgApp.Enum() }),
		"it is a MsgSnap from 3":   header(good, func(m *pb.Message) { m.From = new(uint64(3)) }),
		"was sent in term 1":       header(good, func(m *pb.Message) { m.Term = new(uint64(1)) }),
		"of index 0":               header(good, func(m *pb.Message) { m.Snapshot = nil }),
		"host's bytes are missing": header(good, func(m *pb.Message) { m.Snapshot.Data = nil }),
		"in it is of index 40":     header(good, func(m *pb.Message) { m.Snapshot.Metadata.Index = new(uint64(41)) }),
		"is impossible":            header(impossible, nil),
		"carries what":             header(good, func(m *pb.Message) { m.Entries = []*pb.Entry{{}} }),
	} {
		err := c.nodes[1].r.OfferSnapshot(2, m)
		require.ErrorIs(t, err, ErrBadMessage, want)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, c.nodes[1].r.OfferSnapshot(2, header(good, nil)))
}

// No message of a peer, however odd, makes either core panic.
func TestOddMessages(t *testing.T) {
	types := []pb.MessageType{pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgReadIndex, pb.MsgReadIndexResp, pb.MsgTimeoutNow}
	bothCores(t, func(t *testing.T, core NewCore) {
		for seed := range uint64(60) {
			pinUpstream(t, seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, core, 1, 2, 3)
			c.elect(1)
			c.propose(1, "x")
			c.settle()
			near := func(v uint64) *uint64 { return new(max(v+uint64(rnd.IntN(5)), 2) - 2) }
			for range 400 {
				r := c.nodes[1].r
				m := received(types[rnd.IntN(len(types))], func(m *pb.Message) {
					m.Term, m.Index, m.Commit = near(r.state.Term), near(r.last), near(r.state.Commit)
					m.LogTerm, m.RejectHint = near(r.state.Term), near(r.last)
					if m.GetType() == pb.MsgApp {
						for i := range rnd.IntN(3) {
							m.Entries = append(m.Entries, &pb.Entry{Term: near(m.GetTerm()), Index: new(m.GetIndex() + 1 + uint64(i))})
						}
					}
					if rnd.IntN(2) == 0 {
						m.Reject = new(true)
					}
					if rnd.IntN(4) == 0 {
						m.Context = make([]byte, 8)
					}
					if m.GetType() == pb.MsgReadIndex || m.GetType() == pb.MsgReadIndexResp {
						m.Entries = []*pb.Entry{{Data: []byte("ctx")}}
					}
				})
				_ = r.Receive(m) // refused or not
				if rnd.IntN(10) == 0 {
					r.Tick(c.now)
				}
				if rnd.IntN(3) == 0 { // several messages are one turn
					c.turn(c.nodes[1])
				}
				c.wires = nil
			}
		}
	})
}
