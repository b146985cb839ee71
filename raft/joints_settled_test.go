// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// replacedAround returns a group of {3 4 5}, which 1 and 2 have left one after the other. Node 3 has both
// changes in its log and can apply neither: it lacks a payload below them, which the others have
// applied and cut. Then node 5 died, and node 3 alone had got its last entry, so that node 4 cannot
// win either.
func replacedAround(t *testing.T) (g *group, want [][]byte) {
	g = newGroup(t, 5)
	g.policy = func() ecraft.Policy { return ecraft.Fixed(2) }
	for _, id := range g.ids() {
		g.start(id)
	}
	g.reports = true
	g.elect(5)
	g.tick(2)
	g.drop = func(m *pb.Message) bool {
		return m.GetTo() == 3 && m.GetType() == raft.MsgUnits || m.GetFrom() == 3 && m.GetType() == raft.MsgUnitsAsk
	}
	g.busy = func(uint64) bool { return true } // a snapshot would help
	want = append(want, payload(1, 3000))
	g.propose(5, want[0])
	g.tick(3)
	g.requireApplied(want, 1, 2, 4, 5)
	g.requireApplied(nil, 3)
	for _, gone := range []uint64{1, 2} {
		require.NoError(t, g.nodes[5].rn.ProposeConfChange(explicit(remove(gone))))
		g.tick(20)
		g.cut(4, 5)
		g.stop(gone)
	}
	require.Equal(t, []uint64{3, 4, 5}, g.nodes[4].conf.GetVoters())
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 4 }
	want = append(want, payload(2, 20))
	g.propose(5, want[1])
	g.stop(5)
	g.drop, g.busy = nil, nil
	return g, want
}

// TestVotersAreLearnedFromAnswers: the votes of {1 2 3 4 5} are not to be had. What node 4 answers
// tells node 3 that it may count by {3 4 5}: node 3 leads, can apply nothing, and hands over to node
// 4, which has a snapshot for node 3.
func TestVotersAreLearnedFromAnswers(t *testing.T) {
	g, want := replacedAround(t)
	g.snapshots(4, 200)
	require.NotZero(t, g.nodes[4].rn.BasicStatus().Lead)
	want = append(want, payload(3, 20))
	g.propose(4, want[2])
	g.snapshots(4, 20)
	g.requireApplied(want, 3, 4)
	require.Equal(t, []uint64{3, 4, 5}, g.nodes[3].rn.Status().Config.Voters[0].Slice())
}

// TestMembersOfOthersAreChecked: an answer that no member could give teaches nothing, and ends no
// election either.
func TestMembersOfOthersAreChecked(t *testing.T) {
	g, _ := replacedAround(t)
	var answer *pb.Message
	g.drop = func(m *pb.Message) bool {
		if m.GetTo() == 3 && m.GetType() == pb.MsgPreVoteResp {
			answer = m
		}
		return m.GetTo() == 3
	}
	n := g.nodes[3]
	require.NoError(t, n.storage.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(n.index)}))
	g.start(3) // its commit index was lost
	for range 100 {
		if g.tick(1); answer != nil {
			break
		}
	}
	said := func(version byte, term, index uint64, cs *pb.ConfState) []byte {
		b := binary.AppendUvarint(binary.AppendUvarint([]byte{version}, term), index)
		data, err := proto.Marshal(cs)
		require.NoError(t, err)
		return append(b, data...)
	}
	last, err := n.storage.LastIndex()
	require.NoError(t, err)
	at, term := g.nodes[4].index, n.rn.BasicStatus().GetTerm()
	members := &pb.ConfState{Voters: []uint64{3, 4, 5}, AutoLeave: new(false)}
	require.Equal(t, said(1, term, at, members), answer.GetContext())
	for what, context := range map[string][]byte{
		"another version":               said(2, term, at, members),
		"an entry of another term":      said(1, term+1, at, members),
		"an entry that is not here":     said(1, term, last+1, members),
		"an entry before the changes":   said(1, term, 2, members),
		"no voter":                      said(1, term, at, &pb.ConfState{Learners: []uint64{3}}),
		"a voter that is a learner too": said(1, term, at, &pb.ConfState{Voters: []uint64{3, 4}, Learners: []uint64{4}}),
		"node 0":                        said(1, term, at, &pb.ConfState{Voters: []uint64{0, 3}}),
		"no members":                    said(1, term, at, nil)[:3],
		"half an entry":                 answer.GetContext()[:2],
		"half the members":              answer.GetContext()[:len(answer.GetContext())-1],
	} {
		bad := proto.Clone(answer).(*pb.Message)
		bad.Context = context
		require.NoError(t, n.rn.Step(bad), what)
		require.Zero(t, n.rn.CodingStatus().MembersAt, what)
		require.Equal(t, raft.StatePreCandidate, n.rn.BasicStatus().RaftState, what)
	}
	require.NoError(t, n.rn.Step(answer))
	require.Equal(t, at, n.rn.CodingStatus().MembersAt)
	require.Equal(t, at, n.rn.BasicStatus().GetCommit())
	require.Equal(t, raft.StateCandidate, n.rn.BasicStatus().RaftState, "two of {3 4 5} are enough")
	answer = proto.Clone(answer).(*pb.Message)
	answer.Context = said(1, term, at+1, &pb.ConfState{Voters: []uint64{4, 5}})
	require.NoError(t, n.rn.Step(answer))
	require.Equal(t, raft.StateFollower, n.rn.BasicStatus().RaftState, "it has no vote any more")
}
