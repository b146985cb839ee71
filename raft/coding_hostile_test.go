// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft"
)

// recovering returns a group of three in which node 2 has won an election and
// lacks the payload of the last entry, with the question it asks node 3.
func recovering(t testing.TB) (g *group, ask *pb.Message) {
	g = newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 500))
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgApp && len(m.GetEntries()) == 0
	}
	g.propose(1, payload(1, 500))
	g.stop(1)
	g.drop = func(m *pb.Message) bool {
		if m.GetType() == raft.MsgUnitsAsk && m.GetFrom() == 2 {
			ask = m
		}
		return m.GetType() == raft.MsgUnits || m.GetType() == raft.MsgUnitsAsk
	}
	require.NoError(t, g.nodes[3].rn.ForgetLeader())
	require.NoError(t, g.nodes[2].rn.Campaign())
	g.settle()
	require.NotNil(t, ask)
	return g, ask
}

// lastCoded returns the last entry that a node has stored, and its header.
func (g *group) lastCoded(id uint64) (*pb.Entry, *ecraft.Header) {
	last, err := g.nodes[id].storage.LastIndex()
	require.NoError(g.t, err)
	ents, err := g.nodes[id].storage.Entries(last, last+1, 1<<20)
	require.NoError(g.t, err)
	h, _, err := ecraft.ParseHeader(ents[0].GetData(), 0)
	require.NoError(g.t, err)
	return ents[0], h
}

// push hands a node units of an entry as another one pushes them.
func (g *group) push(from, to uint64, e *pb.Entry, strips ...ecraft.Strip) error {
	return g.nodes[to].rn.Step(&pb.Message{
		Type: new(raft.MsgUnits), From: &from, To: &to, Context: []byte{'p'}, Term: new(uint64(0)),
		Entries: []*pb.Entry{{Index: e.Index, Term: e.Term, Data: gossip.AppendUnits(nil, strips...)}},
	})
}

// TestDamagedLog flips each byte of an entry that a node has stored and starts
// the node again: it refuses to start, or to go on, or gets what it needs from
// the others. It never applies anything else than was proposed.
func TestDamagedLog(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	want := payload(7, 300)
	g.propose(1, want)
	first, err := g.nodes[3].storage.FirstIndex()
	require.NoError(t, err)
	for id := uint64(1); id <= 3; id++ {
		last, err := g.nodes[id].storage.LastIndex()
		require.NoError(t, err)
		ents, err := g.nodes[id].storage.Entries(first, last+1, 1<<20)
		require.NoError(t, err)
		coded := slices.IndexFunc(ents, func(e *pb.Entry) bool { return len(e.GetData()) > 0 })
		good := ents[coded].Data
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 0x10
			ents[coded].Data = bad
			requireNothingElseApplied(t, g, id, want)
			ents[coded].Data = good
		}
	}
}

// requireNothingElseApplied starts a node from its storage, from the beginning,
// beside the others as they are.
func requireNothingElseApplied(t *testing.T, g *group, id uint64, want []byte) {
	t.Helper()
	c := config(g.nodes[id].storage)
	c.ID, c.Coding = id, &raft.Coding{Threshold: 64}
	rn, err := raft.NewRawNode(c)
	if err != nil {
		require.ErrorIs(t, err, raft.ErrStorage)
		return
	}
	for range 5 {
		rn.Tick()
		for rn.HasReady() {
			rd := rn.Ready()
			for _, e := range rd.CommittedEntries {
				if len(e.GetData()) > 0 {
					require.Equal(t, want, e.GetData())
				}
			}
			rn.Advance(rd)
		}
	}
}

// FuzzCodedMessages steps arbitrary messages about units at nodes of all roles,
// one of which waits for answers after an election. They may be refused; nothing
// else than was proposed is ever applied, and nothing panics.
func FuzzCodedMessages(f *testing.F) {
	_, ask := recovering(f)
	answer := proto.Clone(ask).(*pb.Message)
	answer.Type, answer.From, answer.To = new(raft.MsgUnits), new(uint64(3)), new(uint64(2))
	for _, m := range []*pb.Message{ask, answer} {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &pb.Message{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		g, _ := recovering(t)
		g.drop = func(*pb.Message) bool { return true }
		for _, typ := range []pb.MessageType{raft.MsgUnits, raft.MsgUnitsAsk} {
			for _, to := range []uint64{2, 3} {
				c := proto.Clone(m).(*pb.Message)
				c.Type, c.To, c.From = &typ, &to, new(5-to)
				_ = g.nodes[to].rn.Step(c) // refused or not, it must do no harm
			}
			g.settle()
		}
		g.drop = nil
		g.start(1)
		g.tick(60)
		for _, id := range g.ids() {
			for i, p := range g.nodes[id].applied {
				require.Less(t, i, 2)
				require.Equal(t, payload(i, 500), p, "node %d", id)
			}
		}
	})
}

// TestRecoveryAnswerBeyondTheLog: an answer that knows more to be committed than
// the winner of the election has is refused, and counted.
func TestRecoveryAnswerBeyondTheLog(t *testing.T) {
	g, ask := recovering(t)
	m := &pb.Message{
		Type: new(raft.MsgUnits), From: new(uint64(3)), To: new(uint64(2)), Context: []byte{'r'},
		LogTerm: ask.LogTerm, Index: new(uint64(1)), Commit: new(uint64(1000)),
	}
	before := g.events[raft.CodingRejected]
	require.ErrorIs(t, g.nodes[2].rn.Step(m), raft.ErrMalformedMessage)
	require.Greater(t, g.events[raft.CodingRejected], before)
	require.Equal(t, raft.StateCandidate, g.nodes[2].rn.BasicStatus().RaftState)
}

// TestDamagedAnswerIsNone: a node whose own units have rotted does not answer a
// new leader for that entry, which so does not take it for one that nobody can
// restore, and does not cut it.
func TestDamagedAnswerIsNone(t *testing.T) {
	for _, damage := range []bool{false, true} {
		g, ask := recovering(t)
		if e, _ := g.lastCoded(3); damage {
			e.Data[len(e.Data)-10] ^= 1
		}
		g.drop = nil
		ask.To = new(uint64(3))
		require.NoError(t, g.nodes[3].rn.Step(ask))
		g.settle()
		require.Zero(t, g.events[raft.CodingCut], "damaged %t", damage)
		want := raft.StateLeader
		if damage {
			want = raft.StateCandidate
		}
		require.Equal(t, want, g.nodes[2].rn.BasicStatus().RaftState, "damaged %t", damage)
	}
}

// TestWrongUnitsAreNoReasonToCut: wrong units with right checksums spoil what members
// have answered. These answers do not count any more, and the entry, which is committed,
// is not cut.
func TestWrongUnitsAreNoReasonToCut(t *testing.T) {
	t.Run("pushed", func(t *testing.T) { testWrongUnitsAreNoReasonToCut(t, 'p') })
	t.Run("answered", func(t *testing.T) { testWrongUnitsAreNoReasonToCut(t, 'r') })
}

func testWrongUnitsAreNoReasonToCut(t *testing.T, way byte) {
	g := newGroup(t, 5)
	g.elect(1)
	g.propose(1, payload(0, 500))
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgApp && len(m.GetEntries()) == 0
	}
	want := payload(1, 600)
	g.propose(1, want)
	g.requireApplied([][]byte{payload(0, 500), want}, 1) // so it is committed
	g.stop(1)
	answers := uint64(0)
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits && (m.GetFrom() != answers || m.GetContext()[0] != 'r')
	}
	require.NoError(t, g.nodes[3].rn.ForgetLeader())
	require.NoError(t, g.nodes[4].rn.ForgetLeader())
	require.NoError(t, g.nodes[5].rn.ForgetLeader())
	require.NoError(t, g.nodes[2].rn.Campaign())
	g.settle()
	require.NotZero(t, g.events[raft.CodingRecovery])

	answers = 3
	g.tick(6)
	e, h := g.lastCoded(5)
	slot := h.SlotOf(5)
	lie := ecraft.NewCodeword(h, payload(2, 600)).Strip(slot, 0, int(h.Units[slot]))
	require.ErrorIs(t, g.nodes[2].rn.Step(&pb.Message{
		Type: new(raft.MsgUnits), From: new(uint64(5)), To: new(uint64(2)), Context: []byte{way}, Term: new(uint64(0)),
		LogTerm: new(g.nodes[2].rn.BasicStatus().GetTerm()), Index: e.Index, Commit: new(uint64(0)),
		Entries: []*pb.Entry{{Index: e.Index, Term: e.Term, Data: gossip.AppendUnits(nil, lie)}},
	}), gossip.ErrWrongPayload)

	answers = 4
	g.tick(6)
	require.Zero(t, g.events[raft.CodingCut])
	g.drop = nil
	g.tick(40)
	g.requireApplied([][]byte{payload(0, 500), want}, 2, 3, 4, 5)
}

// TestOldWrongUnitsDoNotKeepAWinnerFromLeading: node 2 alone has an entry that was not
// committed, and got wrong units of it. When node 2 wins, everybody answers that it has
// nothing of the entry: that is reason enough to cut, or nobody could ever lead.
func TestOldWrongUnitsDoNotKeepAWinnerFromLeading(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	g.propose(1, payload(0, 500))
	g.drop = func(m *pb.Message) bool { return m.GetType() != pb.MsgApp || m.GetTo() != 2 }
	g.propose(1, payload(1, 600))
	g.stop(1)
	e, h := g.lastCoded(2)
	require.Less(t, int(h.Units[h.SlotOf(2)]), h.D)
	lie := ecraft.NewCodeword(h, payload(2, 600)).Strip(h.SlotOf(5), 0, h.D)
	require.ErrorIs(t, g.push(5, 2, e, lie), gossip.ErrWrongPayload)

	g.drop = nil
	for _, id := range []uint64{3, 4, 5} {
		require.NoError(t, g.nodes[id].rn.ForgetLeader())
	}
	require.NoError(t, g.nodes[2].rn.Campaign())
	g.settle()
	g.tick(10)
	require.NotZero(t, g.events[raft.CodingCut])
	require.Equal(t, raft.StateLeader, g.nodes[2].rn.BasicStatus().RaftState)
	g.requireApplied([][]byte{payload(0, 500)}, 2, 3, 4, 5)
}

// TestRightUnitsAfterWrongOnesComplete: all that the others send node 2 of an entry is
// wrong, for a while. The units that they send afterwards restore it.
func TestRightUnitsAfterWrongOnesComplete(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	g.drop = func(m *pb.Message) bool { return m.GetType() == raft.MsgUnits && m.GetTo() == 2 }
	g.propose(1, payload(1, 600))
	g.tick(2)
	e, h := g.lastCoded(2)
	require.Less(t, int(h.Units[h.SlotOf(2)]), h.D)
	lies := ecraft.NewCodeword(h, payload(2, 600))
	for _, from := range []uint64{3, 4, 5, 1, 3} {
		slot := h.SlotOf(from)
		if slot < 0 {
			slot = h.SlotOf(2) // who encoded it has no slot, and sends of the receiver's
		}
		_ = g.push(from, 2, e, lies.Strip(slot, 0, h.D))
	}
	require.NotZero(t, g.events[raft.CodingRejected])
	g.drop = nil
	g.tick(60)
	g.requireApplied([][]byte{payload(1, 600)}, 1, 2, 3, 4, 5)
}

// TestCodingMistakes: one error names each field that is out of its bounds.
func TestCodingMistakes(t *testing.T) {
	c := config(newStorage(t, 1, 2, 3))
	c.Coding = &raft.Coding{
		Threshold: ecraft.MaxPayload + 1, Policy: ecraft.Fixed(0), ClearPrefix: -1, Memory: -1, GossipGap: -1, GossipDelay: -1,
	}
	_, err := raft.NewRawNode(c)
	for _, field := range []string{"Threshold", "Policy", "ClearPrefix", "Memory", "GossipGap", "GossipDelay"} {
		require.ErrorContains(t, err, "Coding."+field)
	}
	c.Coding = &raft.Coding{Memory: 8<<10 - 1}
	_, err = raft.NewRawNode(c)
	require.ErrorContains(t, err, "Coding.Memory is 8191 bytes; it must be 0 (meaning 67108864) or at least 8192")
}
