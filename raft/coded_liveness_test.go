// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
)

// TestStuckLeaderFindsSuccessor: a leader that cannot apply a change, which makes a
// learner a voter or removes a voter, hands over to who has applied most and knows
// that it votes: to the learner of before if it has applied the change, and else to
// another.
func TestStuckLeaderFindsSuccessor(t *testing.T) {
	type indexes map[uint64]uint64
	for _, tt := range []struct {
		name    string
		change  string
		applied indexes
		want    uint64
	}{
		{"nobody has more", "v3", indexes{2: 4, 3: 4, 4: 4}, None},
		{"who leaves", "r2", indexes{2: 9, 3: 4, 4: 6}, 4},
		{"a learner that votes by now", "v3", indexes{2: 8, 3: 9, 4: 8}, 3},
		{"a learner that does not know", "v3", indexes{2: 4, 3: 6, 4: 5}, 4},
		{"a learner that stays one", "r2", indexes{2: 9, 3: 9, 4: 4}, None},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := codingNode(t, Coding{Policy: ecraft.Levelled{}})
			l := leaderOf(t, r)
			for _, text := range []string{"v4", "r3", "l3"} {
				changes, err := pb.ConfChangesFromString(text)
				require.NoError(t, err)
				r.applyConfChange(&pb.ConfChangeV2{Changes: changes})
			}
			changes, err := pb.ConfChangesFromString(tt.change)
			require.NoError(t, err)
			data, err := proto.Marshal(&pb.ConfChangeV2{Changes: changes})
			require.NoError(t, err)
			for i := uint64(3); i < 7; i++ {
				l.append(copyEntry(&pb.Entry{}, entryID{term: l.term, index: i}))
			}
			l.append(copyEntry(&pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: data}, entryID{term: l.term, index: 7}))
			l.log.committed, l.log.applied = 7, 4
			for id, applied := range tt.applied {
				r.coded.heard(id)
				r.coded.account(id).applied = applied
			}
			got, _ := l.successor()
			require.Equal(t, tt.want, got)
		})
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
		e := copyEntry(&pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: data}, entryID{term: 1, index: uint64(2 + i)})
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

// TestWantsEndWithLeadership: what a leader wanted for others is let go of when it
// leads no more, and not later, when it may be what the node needs to win a term.
func TestWantsEndWithLeadership(t *testing.T) {
	r := codingNode(t, Coding{Policy: ecraft.Levelled{}})
	payload := make([]byte, 1<<16)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Encoder: 2,
		Layout: ecraft.NewLayout(3, 2), Members: []uint64{1, 3}, Units: []uint8{1, 1},
	}
	word := ecraft.NewCodeword(h, payload)
	e := copyEntry(&pb.Entry{Type: pb.EntryNormal.Enum()}, entryID{term: 2, index: 2})
	e.Data = ecraft.Seal(nil, h, 1, 0, word, nil)
	require.NoError(t, r.Step(&pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
		LogTerm: new(uint64(1)), Index: new(uint64(1)), Entries: []*pb.Entry{e}, Commit: new(uint64(2))}))
	leaderOf(t, r)
	r.coded.wantAhead([]*pb.Entry{e})
	rec := r.coded.ledger.find(2)
	require.True(t, rec.pinned)
	r.becomeFollower(r.term+1, None)
	require.False(t, rec.pinned)
	require.Empty(t, r.coded.wanted)
}

// snapshots counts how often a host is asked for one.
type snapshots struct {
	*MemoryStorage
	asked int
}

func (s *snapshots) Snapshot() (*pb.Snapshot, error) {
	s.asked++
	return s.MemoryStorage.Snapshot()
}

// TestMembersAreAskedToRelease: where a change waits for entries that too many have
// released, the leader asks the voters to come that have not; such a one asks its
// host for a snapshot, now and then, and for nobody else.
func TestMembersAreAskedToRelease(t *testing.T) {
	r := codingNode(t, Coding{})
	l := leaderOf(t, r)
	l.enc.check.voters = l.members.Voters[0]
	r.coded.account(2).released = 9
	r.outbox = nil
	l.askRelease(9)
	require.Len(t, r.outbox, 1)
	ask := r.outbox[0]
	require.Equal(t, uint64(3), ask.GetTo())

	f := codingNode(t, Coding{})
	s := &snapshots{MemoryStorage: f.log.storage.(*MemoryStorage)}
	f.id, f.log.storage = 3, s
	arrives := func(from, index uint64, want int) {
		t.Helper()
		m := proto.Clone(ask).(*pb.Message)
		m.From, m.Index = new(from), new(index)
		require.NoError(t, f.Step(m))
		require.Equal(t, want, s.asked)
	}
	f.becomeFollower(r.term, 1)
	f.log.tail.append(entryID{term: 1, index: 1}, make([]*pb.Entry, 8))
	f.log.committed, f.log.applied = 9, 9
	arrives(1, 10, 0)
	arrives(2, 9, 0)
	arrives(1, 9, 1)
	arrives(1, 9, 1)
	for range 10 {
		f.coded.tick()
	}
	arrives(1, 9, 2)
}
