// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// TestFollowersThatLostEachOtherPushAgain: nodes 2 and 4 push to each other, their connections break while the group rests, and
// both hosts say so. Neither would hear of the other by a question for units, because node 3 or 5 has what either lacks. So each
// asks the other for a sign of life, not often while there is none, and not while nothing is to be pushed.
func TestFollowersThatLostEachOtherPushAgain(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	g.tick(2)
	var want [][]byte
	propose := func() {
		want = append(want, payload(len(want), 6000))
		g.propose(1, want[len(want)-1])
	}
	propose()
	asked := 0
	g.nodes[2].rn.ReportUnreachable(4)
	g.nodes[4].rn.ReportUnreachable(2)
	g.drop = func(m *pb.Message) bool {
		ends := [2]uint64{m.GetFrom(), m.GetTo()}
		if between := ends == [2]uint64{2, 4} || ends == [2]uint64{4, 2}; !between {
			return false
		}
		if m.GetType() == raft.MsgUnitsAsk && len(m.GetEntries()) == 0 {
			asked++
		}
		return true // in silence
	}
	g.tick(100)
	require.Zero(t, asked)
	for range 50 {
		propose()
		g.tick(2)
	}
	require.LessOrEqual(t, asked, 2*10, "one question in an election timeout")

	g.drop = nil
	g.tick(11)
	propose()
	g.tick(2)
	before := g.events[raft.CodingAsked]
	for range 5 {
		propose()
		g.requireApplied(want, g.ids()...)
	}
	require.Equal(t, before, g.events[raft.CodingAsked], "pushes have brought all")
}

// TestMemberThatWasCutOffIsNotStuck: node 2 lacks units when its links fail. Alone it takes all others for silent, and then for
// unable to help. When it is back it asks them before it has its leader send a snapshot.
func TestMemberThatWasCutOffIsNotStuck(t *testing.T) {
	for cut := 100; cut < 120; cut++ { // ticks
		g := newGroup(t, 5)
		g.elect(1)
		g.tick(2)
		want := [][]byte{payload(1, 6000)}
		g.drop = func(m *pb.Message) bool { return m.GetType() == raft.MsgUnits && m.GetTo() == 2 }
		g.propose(1, want[0])
		g.tick(1)
		g.requireApplied(nil, 2)
		g.drop = func(m *pb.Message) bool { return m.GetFrom() == 2 || m.GetTo() == 2 }
		g.tick(cut)
		require.NotZero(t, g.nodes[2].rn.CodingStatus().StuckAt)
		leader := g.nodes[1]
		_, cs, err := leader.storage.InitialState()
		require.NoError(t, err)
		_, err = leader.storage.CreateSnapshot(leader.index, cs, encodeAll(leader.applied)) // and keeps its log
		require.NoError(t, err)
		g.drop = nil
		g.tick(30)
		g.requireApplied(want, g.ids()...)
		require.Zero(t, g.events[raft.CodingSnapshot], "cut off for %d ticks", cut)
	}
}

// TestNodeReachesItself: a host that says of its own node that it cannot be reached changes nothing. The node would ask itself
// for a sign of life, and never hear it.
func TestNodeReachesItself(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.stepped = func(m *pb.Message) { require.NotEqual(t, m.GetFrom(), m.GetTo(), m) }
	for id := range uint64(3) {
		g.nodes[1+id].rn.ReportUnreachable(1 + id)
	}
	for i := range 10 {
		g.tick(2)
		g.propose(1, payload(i, 6000))
	}
}
