// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/raft"
)

// Whatever a peer sends, as long as it does not speak for someone else (that is
// the transport's to prevent), a node does not panic, and what it has committed
// stays.
func TestHostilePeer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, rn := nodeOfAnyRole(t, rt)
		for range 20 {
			m := anyMessage(rt)
			m.From, m.To = new(rapid.SampledFrom([]uint64{1, 2, 3, 9}).Draw(rt, "from")), new(uint64(1))
			before := rn.BasicStatus()
			_ = rn.Step(m)
			require.GreaterOrEqual(t, rn.BasicStatus().GetCommit(), before.GetCommit())
			require.GreaterOrEqual(t, rn.BasicStatus().GetTerm(), before.GetTerm())
			if rapid.Bool().Draw(rt, "work") {
				drain(t, rn, s)
			}
			if rapid.Bool().Draw(rt, "tick") {
				rn.Tick()
			}
		}
	})
}

// FuzzStep is the same for bytes: it finds what TestHostilePeer does not think
// of.
func FuzzStep(f *testing.F) {
	rapid.Check(f, func(rt *rapid.T) {
		b, err := proto.Marshal(anyMessage(rt))
		require.NoError(f, err)
		f.Add(b)
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &pb.Message{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		m.From = new(uint64(2))
		for _, role := range allRoles {
			s, rn := nodeOf(t, role, true)
			_ = rn.Step(proto.Clone(m).(*pb.Message))
			drain(t, rn, s)
		}
	})
}

func nodeOfAnyRole(t *testing.T, rt *rapid.T) (*raft.MemoryStorage, *raft.RawNode) {
	return nodeOf(t, rapid.SampledFrom(allRoles).Draw(rt, "role"), rapid.Bool().Draw(rt, "check quorum"))
}

// nodeOf returns a node with a few entries in a role.
func nodeOf(t *testing.T, role raft.StateType, checkQuorum bool) (*raft.MemoryStorage, *raft.RawNode) {
	s := newStorage(t, 1, 2, 3)
	require.NoError(t, s.Append([]*pb.Entry{
		{Term: new(uint64(1)), Index: new(uint64(2))}, {Term: new(uint64(1)), Index: new(uint64(3))}, {Term: new(uint64(2)), Index: new(uint64(4))},
	}))
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(2)), Commit: new(uint64(3))}))
	c := config(s)
	c.PreVote, c.CheckQuorum = role == raft.StatePreCandidate, checkQuorum
	rn := newNode(t, c)
	switch role {
	case raft.StateLeader:
		lead(t, rn, s, 2)
	case raft.StateCandidate, raft.StatePreCandidate:
		require.NoError(t, rn.Campaign())
	}
	drain(t, rn, s)
	return s, rn
}

// anyMessage draws messages that are nearly right, so that they get far.
func anyMessage(rt *rapid.T) *pb.Message {
	small := rapid.OneOf(rapid.Uint64Range(0, 8), rapid.Uint64())
	optional := func(name string) *uint64 {
		if rapid.IntRange(0, 4).Draw(rt, "has "+name) == 0 {
			return nil
		}
		return new(small.Draw(rt, name))
	}
	m := &pb.Message{
		Type: pb.MessageType(rapid.Int32Range(-1, 25).Draw(rt, "type")).Enum(),
		Term: optional("term"), LogTerm: optional("log term"), Index: optional("index"), Commit: optional("commit"),
		Vote: optional("vote"), RejectHint: optional("hint"), Reject: new(rapid.Bool().Draw(rt, "reject")),
		Context: rapid.SampledFrom([][]byte{nil, {1}, {1, 0, 0, 0, 0, 0, 0, 0}, []byte("CampaignTransfer")}).Draw(rt, "context"),
	}
	consecutive := rapid.Bool().Draw(rt, "consecutive")
	for i := range rapid.IntRange(0, 3).Draw(rt, "entries") {
		e := &pb.Entry{Term: optional("entry term"), Index: optional("entry index"), Data: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(rt, "data"),
			Type: pb.EntryType(rapid.Int32Range(0, 3).Draw(rt, "entry type")).Enum()}
		if consecutive {
			e.Term, e.Index = m.Term, new(m.GetIndex()+uint64(i)+1)
		}
		m.Entries = append(m.Entries, e)
	}
	if rapid.Bool().Draw(rt, "has snapshot") {
		m.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: optional("snapshot index"), Term: optional("snapshot term"),
			ConfState: rapid.SampledFrom([]*pb.ConfState{nil, {Voters: []uint64{1, 2, 3}}, {Voters: []uint64{1}, Learners: []uint64{1}},
				{Voters: []uint64{1, 2}, VotersOutgoing: []uint64{1, 3}, LearnersNext: []uint64{3}, AutoLeave: new(true)},
				{Learners: []uint64{1}}, {VotersOutgoing: []uint64{1}}}).Draw(rt, "members")}}
	}
	return m
}

// Others may propose as fast as they can while there is no room: the log does not grow by a line for each.
func TestDroppedProposalsAreToldOnceInAnElectionTimeout(t *testing.T) {
	w := &warnings{}
	s := newStorage(t, 1, 2, 3)
	c := config(s)
	c.MaxUncommittedEntriesSize, c.Logger = 10, w
	rn := newNode(t, c)
	lead(t, rn, s, 2)
	require.NoError(t, rn.Propose(make([]byte, 10)))
	flood := func() {
		for range 100 {
			require.ErrorIs(t, rn.Propose([]byte("x")), raft.ErrProposalDropped)
		}
	}
	flood()
	require.Equal(t, 1, w.count("drops a proposal"))
	for range c.ElectionTick {
		rn.Tick()
	}
	flood()
	require.Equal(t, 2, w.count("drops a proposal"))
}
