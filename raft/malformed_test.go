// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// Messages that no correct node sends are refused with an error that says what
// is wrong, and change nothing.
func TestMalformedMessages(t *testing.T) {
	entry := func(term, index uint64) *pb.Entry { return &pb.Entry{Term: new(term), Index: new(index)} }
	msg := func(typ pb.MessageType, m *pb.Message) *pb.Message {
		m.Type, m.From, m.To = typ.Enum(), new(uint64(2)), new(uint64(1))
		if m.Term == nil {
			m.Term = new(uint64(5))
		}
		return m
	}
	snapshot := func(term, index uint64) *pb.Message {
		return msg(pb.MsgSnap, &pb.Message{Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: &index, Term: &term, ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}}}}})
	}
	for name, c := range map[string]struct {
		m    *pb.Message
		want string
	}{
		"gap": {msg(pb.MsgApp, &pb.Message{LogTerm: new(uint64(5)), Index: new(uint64(3)), Entries: []*pb.Entry{entry(5, 5)}}),
			"entry 1 of 1 is 5/5, behind 5/3, from a leader of term 5"},
		"nil entry":             {msg(pb.MsgApp, &pb.Message{LogTerm: new(uint64(5)), Index: new(uint64(3)), Entries: []*pb.Entry{nil}}), "entry 1 of 1"},
		"term falls":            {msg(pb.MsgApp, &pb.Message{LogTerm: new(uint64(5)), Index: new(uint64(3)), Entries: []*pb.Entry{entry(4, 4)}}), "is 4/4, behind 5/3"},
		"future entry":          {msg(pb.MsgApp, &pb.Message{LogTerm: new(uint64(5)), Index: new(uint64(3)), Entries: []*pb.Entry{entry(6, 4)}}), "leader of term 5"},
		"commit beyond the log": {msg(pb.MsgHeartbeat, &pb.Message{Commit: new(uint64(9))}), "commits index 9, but this log ends at 4"},
		"no entries":            {msg(pb.MsgProp, &pb.Message{}), "MsgProp from 2 has no entries"},
		"nil proposal":          {msg(pb.MsgProp, &pb.Message{Entries: []*pb.Entry{{}, nil}}), "MsgProp from 2 has a nil entry"},
		"no context":            {msg(pb.MsgReadIndex, &pb.Message{}), "MsgReadIndex from 2 has no entry"},
		"short round":           {msg(pb.MsgHeartbeatResp, &pb.Message{Context: []byte("abc")}), "context of 3 bytes"},
		"term out of reach":     {msg(pb.MsgTimeoutNow, &pb.Message{Term: new(uint64(math.MaxUint64))}), "has term 18446744073709551615"},
		"vote without term":     {msg(pb.MsgVote, &pb.Message{Term: new(uint64(0))}), "MsgVote from 2 has no term"},
		"snapshot with impossible members": {msg(pb.MsgSnap, &pb.Message{Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(50)), Term: new(uint64(5)), ConfState: &pb.ConfState{Voters: []uint64{1}, Learners: []uint64{1}}}}}),
			"cannot be restored"},
		"snapshot of a term out of reach":   {snapshot(math.MaxUint64, 50), "term and index can be at most"},
		"snapshot of an index out of reach": {snapshot(5, math.MaxUint64), "term and index can be at most"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t, 1, 2, 3)
			require.NoError(t, s.Append([]*pb.Entry{entry(1, 2), entry(1, 3), entry(5, 4)}))
			require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(5)), Commit: new(uint64(3))}))
			rn := newNode(t, config(s))
			drain(t, rn, s)
			before := rn.Status().String()
			err := rn.Step(c.m)
			require.ErrorIs(t, err, raft.ErrMalformedMessage)
			require.ErrorContains(t, err, c.want)
			if l := rn.BasicStatus().Lead; l != raft.None { // it may have learnt who leads
				require.Equal(t, uint64(2), l)
				require.NoError(t, rn.ForgetLeader())
			}
			require.Equal(t, before, rn.Status().String())
			require.False(t, rn.HasReady())
		})
	}
}

// A proposal with a configuration change that nobody could apply is dropped.
func TestUnreadableConfChange(t *testing.T) {
	s := newStorage(t, 1)
	rn := newNode(t, config(s))
	lead(t, rn, s)
	for want, data := range map[string][]byte{
		"configuration change of 2 bytes": {0xff, 0xff},
		"unknown transition 7":            {0x08, 0x07},
	} {
		err := rn.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: new(uint64(1)),
			Entries: []*pb.Entry{{Data: []byte("fine")}, {Type: pb.EntryConfChangeV2.Enum(), Data: data}}})
		require.ErrorIs(t, err, raft.ErrProposalDropped)
		require.ErrorIs(t, err, raft.ErrMalformedMessage)
		require.ErrorContains(t, err, want)
	}
	require.False(t, rn.HasReady(), "nothing of the proposal is appended")
}

// A readable change in front of an unreadable one is not appended, and so no later change waits for it.
func TestRefusedConfChangeIsNotPending(t *testing.T) {
	s := newStorage(t, 1)
	rn := newNode(t, config(s))
	lead(t, rn, s)
	add := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{NodeId: new(uint64(2)), Type: pb.ConfChangeAddLearnerNode.Enum()}}}
	data, err := proto.Marshal(add)
	require.NoError(t, err)
	typ := pb.EntryConfChangeV2.Enum()
	require.ErrorIs(t, rn.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: new(uint64(1)),
		Entries: []*pb.Entry{{Type: typ, Data: data}, {Type: typ, Data: []byte{0xff, 0xff}}}}), raft.ErrMalformedMessage)
	require.NoError(t, rn.ProposeConfChange(add))
	rd := rn.Ready()
	require.Len(t, rd.Entries, 1)
	require.Equal(t, pb.EntryConfChangeV2, rd.Entries[0].GetType(), "an empty entry is a refused change")
}

// A message of a leader without a term does not take a candidate back to term 0, in which it
// would have voted for nobody.
func TestCandidateKeepsItsTerm(t *testing.T) {
	for _, typ := range []pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap} {
		for _, role := range []raft.StateType{raft.StateCandidate, raft.StatePreCandidate} {
			_, rn := nodeOf(t, role, false)
			before := rn.Status().String()
			err := rn.Step(&pb.Message{Type: typ.Enum(), From: new(uint64(2)), To: new(uint64(1))})
			require.ErrorIs(t, err, raft.ErrMalformedMessage)
			require.ErrorContains(t, err, typ.String()+" from 2 has no term")
			require.Equal(t, before, rn.Status().String())
		}
	}
}

// A snapshot that does not name this node is ignored, however new it is.
func TestSnapshotForOthers(t *testing.T) {
	s := newStorage(t, 1, 2)
	rn := newNode(t, config(s))
	for _, cs := range []*pb.ConfState{nil, {Voters: []uint64{2, 3}}} {
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(2)), Term: new(uint64(4)),
			Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(9)), Term: new(uint64(4)), ConfState: cs}}}))
		sent := drain(t, rn, s)
		require.Equal(t, uint64(1), sent[len(sent)-1].GetIndex(), "it acknowledges what it has")
	}
}

// A node does not lead itself, nor ask itself for its vote.
func TestMessagesFromSelf(t *testing.T) {
	for _, typ := range []pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap, pb.MsgHeartbeatResp, pb.MsgVote, pb.MsgPreVote, pb.MsgTimeoutNow, pb.MsgReadIndexResp} {
		s := newStorage(t, 1, 2)
		rn := newNode(t, config(s))
		err := rn.Step(&pb.Message{Type: typ.Enum(), From: new(uint64(1)), To: new(uint64(1)), Term: new(uint64(3))})
		require.ErrorIs(t, err, raft.ErrMalformedMessage)
		require.ErrorContains(t, err, "says that it is from 1, which is this node")
		require.False(t, rn.HasReady())
	}
}

// An acknowledgement of what the leader does not have is no acknowledgement.
func TestAcknowledgesTooMuch(t *testing.T) {
	s := newStorage(t, 1, 2, 3)
	rn := newNode(t, config(s))
	lead(t, rn, s, 2)
	before := rn.Status().Progress[2]
	err := rn.Step(acceptance(3))
	require.ErrorIs(t, err, raft.ErrMalformedMessage)
	require.ErrorContains(t, err, "2 acknowledges index 3, but this leader's log ends at 2")
	require.Equal(t, before, rn.Status().Progress[2])
}
