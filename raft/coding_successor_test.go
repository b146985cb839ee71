// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// A change of the members is checked by the leader that appends it, and may be committed by
// another, which has it in its log.

// TestChangeWaitsForWhatEarlierLeadersCommitted: node 1 commits an entry behind the beginning of a
// joint configuration of five and three, before its host has put that into force: any three of five
// restore the entry, and no client waits any more. Node 2, which knows only that the beginning is
// committed, takes over, and its host, which checks changes itself, proposes the end. Node 2 fails
// when nodes 1 and 4 have that. Node 1 leads again, for which the entry is committed: it would
// commit the end while node 3 has too few units of the entry for what comes then, a loss of node 1.
func TestChangeWaitsForWhatEarlierLeadersCommitted(t *testing.T) {
	g := newHostChecked(t, 5)
	g.elect(1)
	g.tick(2)
	coded := g.nodes[1].index + 2
	var sent *pb.Message
	cut := map[uint64]bool{}
	g.drop = func(m *pb.Message) bool {
		if es := m.GetEntries(); m.GetType() == pb.MsgApp && m.GetTo() == 2 && len(es) > 0 && es[len(es)-1].GetIndex() == coded {
			sent = m
		}
		tells := m.GetFrom() == 1 && m.GetType() < raft.MsgUnits && m.GetCommit() >= coded
		return tells || m.GetType() == pb.MsgApp && cut[m.GetTo()]
	}
	want := [][]byte{payload(1, 3000)}
	require.NoError(t, g.nodes[1].rn.ProposeConfChange(explicit(remove(4), remove(5))))
	g.propose(1, want[0])
	g.requireApplied(want, 1)
	require.Equal(t, coded-1, g.nodes[2].index)
	require.NotEmpty(t, g.nodes[2].conf.GetVotersOutgoing())
	require.NoError(t, g.nodes[2].rn.Step(sent)) // again: node 2 has the payload by now, and says so
	g.settle()
	cut[3], cut[5] = true, true
	g.nodes[1].rn.TransferLeader(2)
	g.settle()
	require.Equal(t, raft.StateLeader, g.nodes[2].rn.BasicStatus().RaftState)
	require.Equal(t, coded-1, g.nodes[2].rn.BasicStatus().HardState.GetCommit())
	require.NoError(t, g.nodes[2].rn.ProposeConfChange(explicit()))
	g.settle()

	g.stop(3)
	g.nodes[2].index, g.nodes[2].applied = 1, nil
	g.start(2)
	g.drop = func(m *pb.Message) bool { return m.GetType() == pb.MsgPreVote && m.GetFrom() != 1 }
	g.tick(40)
	require.Equal(t, raft.StateLeader, g.nodes[1].rn.BasicStatus().RaftState)

	g.stop(1)
	if len(g.nodes[1].conf.GetVotersOutgoing()) == 0 {
		g.stop(4, 5) // which have left
	}
	for _, id := range []uint64{2, 3} { // what they have applied is not on their disks
		g.nodes[id].index, g.nodes[id].applied = 1, nil
		g.start(id)
	}
	g.drop = nil
	g.tick(60)
	g.requireApplied(want, 2, 3)
}

// TestChangeWaitsForCommittedUnits: node 1 was down and has no units of an entry. So that the five
// may become three, node 4, the leader, sends it some, and the carrier reaches no other node. Node 5
// leads next, and puts its own entry into the carrier's place at node 1; then node 4 leads again. Had
// it taken node 1's word for the carrier before that was committed, the end of the joint
// configuration would stand behind, and be committed without node 1: a loss of node 2 is one of the
// entry.
func TestChangeWaitsForCommittedUnits(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(4)
	g.tick(2)
	g.stop(1)
	g.tick(4)
	want := [][]byte{payload(1, 3000)}
	g.propose(4, want[0])
	g.start(1)
	g.tick(5)
	g.requireApplied(want, g.ids()...)

	begins := g.nodes[4].index + 1
	var runs uint64
	cut := map[uint64]bool{2: true, 3: true, 5: true}
	g.drop = func(m *pb.Message) bool {
		es := m.GetEntries()
		late := m.GetType() == pb.MsgApp && cut[m.GetTo()] && len(es) > 0 && es[len(es)-1].GetIndex() > begins
		return late || m.GetType() == pb.MsgPreVote && m.GetFrom() != runs
	}
	last := func(id uint64) uint64 {
		i, err := g.nodes[id].storage.LastIndex()
		require.NoError(t, err)
		return i
	}
	g.change(4, remove(4), remove(5))
	g.tick(3)
	require.Equal(t, begins, last(2))
	require.Greater(t, last(1), begins)

	g.stop(4)
	runs = 5
	g.tick(40)
	require.Equal(t, raft.StateLeader, g.nodes[5].rn.BasicStatus().RaftState)
	require.Equal(t, begins, last(2))
	require.Equal(t, begins+1, last(1))

	again := func(ids ...uint64) { // what they have applied is not on their disks
		for _, id := range ids {
			g.nodes[id].index, g.nodes[id].applied = 1, nil
			g.start(id)
		}
	}
	g.stop(5)
	again(4)
	runs, cut = 4, map[uint64]bool{1: true}
	g.tick(40)
	require.Equal(t, g.nodes[4].index, last(2))

	g.stop(2)
	if len(g.nodes[4].conf.GetVotersOutgoing()) == 0 {
		g.stop(4) // it has left, and so has 5
	} else {
		again(5)
	}
	again(1, 3)
	g.drop = nil
	g.tick(60)
	g.requireApplied(want, 1, 3)
}
