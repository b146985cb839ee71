// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
)

// codingNode is node 1 of three that code.
func codingNode(t *testing.T, coding Coding) *raft {
	ms := NewMemoryStorage()
	require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
	}}))
	r, err := newRaft(&Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: ms, MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &coding,
	})
	require.NoError(t, err)
	return r
}

// codedFor returns the header of a payload that node 2 coded for 1 and 3.
func codedFor(payload []byte) *ecraft.Header {
	return &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: ecraft.NewLayout(3, 2), Encoder: 2, Members: []uint64{1, 3}, Units: []uint8{1, 1},
	}
}

// TestRidersBehindASnapshot: an append whose riders speak of entries that a snapshot
// covers is taken while the host still has to apply that.
func TestRidersBehindASnapshot(t *testing.T) {
	r := codingNode(t, Coding{})
	r.becomeFollower(2, 2)
	require.NoError(t, r.Step(&pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
		Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(9)), Term: new(uint64(2)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
		}}}))
	require.NotNil(t, r.log.tail.snapshot)
	carrier := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 2, Riders: []ecraft.Rider{
		{ID: ecraft.ID{Term: 2, Index: 5}, Totals: []uint8{0, 2}},
	}}
	e := copyEntry(&pb.Entry{}, ecraft.ID{Term: 2, Index: 10})
	e.Data = ecraft.Seal(nil, carrier, 1, 0, nil, nil)
	require.NoError(t, r.Step(&pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
		LogTerm: new(uint64(2)), Index: new(uint64(9)), Commit: new(uint64(9)), Entries: []*pb.Entry{e}}))
	require.Equal(t, uint64(10), r.log.last().Index)
}

// TestRiderOfOtherShape: a carrier comes with a rider for an entry that is applied, so
// that nothing is known of it any more, and says how much of it one slot holds, where
// it has two. The node starts again, from an older state: the rider counts for nothing.
func TestRiderOfOtherShape(t *testing.T) {
	payload := bytes.Repeat([]byte("payload "), 100)
	h := codedFor(payload)
	word := ecraft.NewCodeword(h, payload)
	carrier := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 2, Riders: []ecraft.Rider{{ID: ecraft.ID{Term: 1, Index: 2}, Totals: []uint8{2}}}}
	var ents []*pb.Entry
	for i, data := range [][]byte{
		ecraft.Seal(nil, h, 1, 0, word, nil),
		ecraft.Seal(nil, carrier, 1, 0, nil, []*ecraft.Codeword{nil}),
	} {
		ents = append(ents, &pb.Entry{Term: new(uint64(1)), Index: new(uint64(i) + 2), Data: data})
	}
	a := newSolo(t, Config{Coding: &Coding{}}, 1, 2, 3)
	send := func(m *pb.Message) error {
		m.Type, m.From, m.To, m.Term = pb.MsgApp.Enum(), new(uint64(2)), new(uint64(1)), new(uint64(1))
		return a.Step(m)
	}
	require.NoError(t, send(&pb.Message{LogTerm: new(uint64(1)), Index: new(uint64(1)), Entries: ents[:1], Commit: new(uint64(2))}))
	require.ErrorIs(t, send(&pb.Message{LogTerm: new(uint64(1)), Index: new(uint64(2)), Entries: ents[1:]}), ErrMalformedMessage)
	a.log.applying = 2
	a.appliedTo(2, 0)
	require.NoError(t, send(&pb.Message{LogTerm: new(uint64(1)), Index: new(uint64(2)), Entries: ents[1:]}))

	ms := a.cfg.Storage.(*MemoryStorage)
	require.NoError(t, ms.Append(ents))
	again, err := newRaft(&a.cfg)
	require.NoError(t, err)
	s := (&RawNode{raft: again}).CodingStatus()
	require.Equal(t, map[uint64]int{1: 1, 3: 1}, s.Entries[0].Units)
}

// TestLoneWinnerCutsWhatItCannotComplete: the only voter lacks the payload of an entry
// that is not committed, and nobody is there to answer. Its own units are the answer of
// a majority, so it cuts the entry, and leads.
func TestLoneWinnerCutsWhatItCannotComplete(t *testing.T) {
	payload := bytes.Repeat([]byte("abc"), 400)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Layout: ecraft.NewLayout(3, 2),
		Encoder: 3, Members: []uint64{1, 2}, Units: []uint8{1, 1},
	}
	for _, learners := range [][]uint64{nil, {2}} {
		ms := NewMemoryStorage()
		require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1}, Learners: learners},
		}}))
		require.NoError(t, ms.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
		data := ecraft.Seal(nil, h, 1, 0, ecraft.NewCodeword(h, payload), nil)
		require.NoError(t, ms.Append([]*pb.Entry{copyEntry(&pb.Entry{Data: data}, ecraft.ID{Term: 1, Index: 2})}))
		rn, err := NewRawNode(&Config{
			ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: ms, MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &Coding{},
		})
		require.NoError(t, err)
		require.NoError(t, rn.Campaign())
		for rn.HasReady() {
			rd := rn.Ready()
			require.NoError(t, ms.Append(rd.Entries))
			rn.Advance(rd)
		}
		require.Equal(t, StateLeader, rn.BasicStatus().RaftState)
		require.Equal(t, uint64(2), rn.BasicStatus().HardState.GetCommit())
	}
}

// TestLearnerThatIsToVoteCampaigns: a learner lacks the payload of a committed entry, so
// it cannot apply the change behind the entry that gives it a vote. Its log may be the
// only one that can win, so it campaigns by the change. Without the change it does not.
func TestLearnerThatIsToVoteCampaigns(t *testing.T) {
	payload := bytes.Repeat([]byte("abc"), 400)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Layout: ecraft.NewLayout(3, 2),
		Encoder: 1, Members: []uint64{2, 3}, Units: []uint8{1, 1},
	}
	cc, err := proto.Marshal(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(3))}}})
	require.NoError(t, err)
	for _, promoted := range []bool{true, false} {
		ms := NewMemoryStorage()
		require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2}, Learners: []uint64{3}},
		}}))
		ents := []*pb.Entry{copyEntry(&pb.Entry{Data: ecraft.Seal(nil, h, 3, 0, ecraft.NewCodeword(h, payload), nil)}, ecraft.ID{Term: 1, Index: 2})}
		if promoted {
			ents = append(ents, copyEntry(&pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: cc}, ecraft.ID{Term: 1, Index: 3}))
		}
		require.NoError(t, ms.Append(ents))
		require.NoError(t, ms.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: ents[len(ents)-1].Index}))
		rn, err := NewRawNode(&Config{
			ID: 3, ElectionTick: 10, HeartbeatTick: 1, Storage: ms, MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &Coding{},
		})
		require.NoError(t, err)
		for range 20 {
			rn.Tick()
		}
		require.Equal(t, promoted, rn.BasicStatus().RaftState == StateCandidate)
	}
}

// TestLoneWinnerLeads: the only voter has two changes in its log that it does not
// know to be committed, after a write that a crash tore. It leads, although nobody
// else is there to answer it.
func TestLoneWinnerLeads(t *testing.T) {
	ms := NewMemoryStorage()
	require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1}},
	}}))
	require.NoError(t, ms.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
	for i, text := range []string{"l2", "l3"} {
		changes, err := pb.ConfChangesFromString(text)
		require.NoError(t, err)
		data, err := proto.Marshal(&pb.ConfChangeV2{Changes: changes})
		require.NoError(t, err)
		e := copyEntry(&pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: data}, ecraft.ID{Term: 1, Index: uint64(2 + i)})
		require.NoError(t, ms.Append([]*pb.Entry{e}))
	}
	rn, err := NewRawNode(&Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: ms, MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &Coding{},
	})
	require.NoError(t, err)
	require.NoError(t, rn.Campaign())
	for rn.HasReady() {
		rd := rn.Ready()
		require.NoError(t, ms.Append(rd.Entries))
		rn.Advance(rd)
	}
	require.Equal(t, StateLeader, rn.BasicStatus().RaftState)
	require.Equal(t, uint64(4), rn.BasicStatus().HardState.GetCommit())
}
