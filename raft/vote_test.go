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

// With async storage writes the votes of others may arrive before the
// candidate's own term and vote are written. It must not lead on them: after a
// power failure it could win the same term once more, and write other entries
// under the same index and term.
func TestCandidateWaitsForItsOwnVote(t *testing.T) {
	c := config(newStorage(t, 1, 2, 3))
	c.AsyncStorageWrites = true
	rn := newNode(t, c)
	require.NoError(t, rn.Campaign())
	rd := rn.Ready()
	for _, id := range []uint64{2, 3} {
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgVoteResp.Enum(), From: new(id), To: new(uint64(1)), Term: new(uint64(1))}))
	}
	require.Equal(t, raft.StateCandidate, rn.BasicStatus().RaftState)
	write := rd.Messages[len(rd.Messages)-1]
	require.Equal(t, raft.LocalAppendThread, write.GetTo())
	for _, m := range write.GetResponses() {
		require.NoError(t, rn.Step(m))
	}
	require.Equal(t, raft.StateLeader, rn.BasicStatus().RaftState)
}

// A host may call Advance before it applies the entries of the Ready. So a node may campaign, then apply
// the change that removes the node, and then win: it stays a follower. A node that the change made a
// learner leads, as upstream's does.
func TestCandidateThatIsRemovedDoesNotLead(t *testing.T) {
	for typ, want := range map[pb.ConfChangeType]raft.StateType{
		pb.ConfChangeRemoveNode:     raft.StateFollower,
		pb.ConfChangeAddLearnerNode: raft.StateLeader,
	} {
		for _, preVote := range []bool{false, true} {
			s := newStorage(t, 1, 2, 3)
			cc := &pb.ConfChange{NodeId: new(uint64(1)), Type: typ.Enum()}
			data, err := proto.Marshal(cc)
			require.NoError(t, err)
			require.NoError(t, s.Append([]*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(1)), Type: pb.EntryConfChange.Enum(), Data: data}}))
			require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(2))}))
			c := config(s)
			c.PreVote = preVote
			rn := newNode(t, c)
			drain(t, rn, s)
			require.NoError(t, rn.Campaign())
			drain(t, rn, s)
			rn.ApplyConfChange(cc)
			vote := func(typ pb.MessageType) {
				for _, id := range []uint64{2, 3} {
					require.NoError(t, rn.Step(&pb.Message{Type: typ.Enum(), From: new(id), To: new(uint64(1)), Term: new(uint64(2))}))
				}
				drain(t, rn, s)
			}
			if preVote {
				vote(pb.MsgPreVoteResp)
			}
			vote(pb.MsgVoteResp)
			require.Equal(t, want, rn.BasicStatus().RaftState, "%s, pre-vote %t", typ, preVote)
			require.EqualValues(t, 2, rn.BasicStatus().GetTerm())
		}
	}
}

// A group may be idle for longer than ticks can be counted: its members still notice when their
// leader is gone.
func TestIdleGroupElectsAfterAnyTime(t *testing.T) {
	rn := newNode(t, config(newStorage(t, 1, 2)))
	raft.BeQuiet(rn, math.MaxInt32-1)
	for range 3 {
		rn.TickQuiesced()
	}
	rn.Tick()
	require.Equal(t, raft.StateCandidate, rn.BasicStatus().RaftState)
}

// A refused vote names the last committed entry. A candidate takes its own log for committed up to there only if it has
// that entry, and only with coding on; without coding it decides as upstream's library does.
func TestRefusalTellsCommit(t *testing.T) {
	for _, tt := range []struct {
		name              string
		index, term, want uint64
		reject, plain     bool
	}{
		{name: "an entry it has", index: 3, term: 1, reject: true, want: 3},
		{name: "another entry", index: 3, term: 2, reject: true, want: 2},
		{name: "beyond the log", index: 1 << 62, term: 1, reject: true, want: 2},
		{name: "nothing new", index: 1, term: 1, reject: true, want: 2},
		{name: "a vote granted", index: 3, term: 1, want: 2},
		{name: "coding off", index: 3, term: 1, reject: true, plain: true, want: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStorage(t, 1, 2, 3, 4, 5)
			require.NoError(t, s.Append([]*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(1))}, {Index: new(uint64(3)), Term: new(uint64(1))}}))
			require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(2))}))
			c := config(s)
			if !tt.plain {
				c.Coding = &raft.Coding{}
			}
			rn := newNode(t, c)
			require.NoError(t, rn.Campaign())
			term := rn.BasicStatus().GetTerm()
			require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgVoteResp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: &term,
				Reject: &tt.reject, Index: &tt.index, LogTerm: &tt.term}))
			require.Equal(t, tt.want, rn.BasicStatus().GetCommit())
		})
	}
}

// TestRefusalOfAnEarlierTerm: who refuses a pre-vote may not have heard of the term
// of who asks. What it knows to be committed is so all the same; but a word on an
// entry that is not in the log is not believed.
func TestRefusalOfAnEarlierTerm(t *testing.T) {
	s := newStorage(t, 1, 2, 3, 4)
	require.NoError(t, s.Append([]*pb.Entry{{Term: new(uint64(4)), Index: new(uint64(2))}, {Term: new(uint64(4)), Index: new(uint64(3))}}))
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(5)), Commit: new(uint64(1))}))
	c := config(s)
	c.PreVote, c.Coding = true, &raft.Coding{}
	rn := newNode(t, c)
	refusal := func(term, index, at uint64) {
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgPreVoteResp.Enum(), From: new(uint64(3)), To: new(uint64(1)), Term: new(at), Reject: new(true), LogTerm: &term, Index: &index}))
	}
	refusal(4, 2, 4)
	require.EqualValues(t, 1, rn.BasicStatus().GetCommit(), "nobody was asked")
	require.NoError(t, rn.Campaign())
	refusal(3, 3, 4)
	require.EqualValues(t, 1, rn.BasicStatus().GetCommit())
	refusal(4, 2, 4)
	require.EqualValues(t, 2, rn.BasicStatus().GetCommit())
	require.EqualValues(t, 5, rn.BasicStatus().GetTerm())
}
