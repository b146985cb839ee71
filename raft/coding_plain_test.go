// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// A member that starts with Coding.Plain keeps the whole group plain until it is
// restarted without.
func TestMemberThatStartsPlain(t *testing.T) {
	g := newGroup(t, 3)
	n := g.nodes[3]
	c := config(n.storage)
	c.ID, c.Applied = 3, n.index
	c.Coding = &raft.Coding{Threshold: 64, Plain: true}
	n.rn = newNode(t, c)
	require.True(t, n.rn.CodingStatus().Plain)

	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.settle()
	require.Zero(t, g.events[raft.CodingEncoded])
	g.start(3)
	g.tick(3) // it says that it codes again
	g.propose(1, payload(1, 1000))
	g.settle()
	require.Equal(t, 1, g.events[raft.CodingEncoded])
	g.requireApplied([][]byte{payload(0, 1000), payload(1, 1000)}, 1, 2, 3)
}

// A member that was restarted from an older state needs what the others have cut. It
// says so although nobody proposes anything that it could acknowledge, and again if
// what it says is lost.
func TestStuckWhereNobodyProposes(t *testing.T) {
	for _, lost := range []bool{false, true} {
		g := newGroup(t, 3)
		g.elect(1)
		want := payload(0, 1000)
		g.propose(1, want)
		g.tick(3)
		g.requireApplied([][]byte{want}, 1, 2, 3)
		for _, id := range []uint64{1, 2} {
			g.compact(id, g.nodes[id].index)
		}
		n := g.nodes[3]
		n.index, n.applied = 1, nil
		g.start(3)
		if lost {
			g.drop = func(m *pb.Message) bool { return m.GetFrom() == 3 && m.GetType() == pb.MsgAppResp }
			g.tick(100)
			require.Empty(t, n.applied)
			g.drop = nil
		}
		g.tick(30)
		g.requireApplied([][]byte{want}, 1, 2, 3)
	}
}

// A member that was restarted knows whether what it has applied is coded: an idle host
// may not compact for long.
func TestDenseAfterRestart(t *testing.T) {
	for _, coded := range []bool{false, true} {
		g := newGroup(t, 3)
		g.elect(1)
		size := 10 // below the threshold
		if coded {
			size = 1000
		}
		g.propose(1, payload(0, size))
		g.propose(1, []byte("small"))
		g.tick(3)
		g.start(2)
		require.Equal(t, !coded, g.nodes[2].rn.CodingStatus().Dense)
	}
}

// A member that was restarted with a long log does not read all of it at once. Under
// Densify it looks at the rest.
func TestDenseAfterRestartWithALongLog(t *testing.T) {
	for _, coded := range []bool{false, true} {
		g := newGroup(t, 3)
		g.elect(1)
		g.nodes[1].rn.Densify(true)
		for i := range 20 {
			g.propose(1, payload(i, 1<<20))
		}
		g.nodes[1].rn.Densify(false)
		g.tick(3)
		if coded {
			g.propose(1, payload(20, 1000))
			require.Equal(t, 1, g.events[raft.CodingEncoded])
		}
		g.propose(1, payload(21, 10))
		g.tick(3)
		g.start(2)
		n := g.nodes[2].rn
		require.False(t, n.CodingStatus().Dense, "not known yet")
		n.Densify(true)
		g.tick(30)
		require.Equal(t, !coded, n.CodingStatus().Dense)
	}
}

// Members that were restarted without coding, while all were to write plain
// entries, are sent no envelope when that ends, although no acknowledgement has
// told the leader.
func TestPlainMemberAfterDensify(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 10)) // plain
	for _, id := range g.ids() {
		g.nodes[id].rn.Densify(true)
	}
	g.tick(3)
	n := g.nodes[2]
	require.True(t, n.rn.CodingStatus().Dense)
	c := config(n.storage)
	c.ID, c.Applied = 2, n.index
	n.rn = newNode(t, c)
	for _, id := range []uint64{1, 3} {
		g.nodes[id].rn.Densify(false)
	}
	g.propose(1, payload(1, 1000))
	require.Zero(t, g.events[raft.CodingEncoded])
	g.requireApplied([][]byte{payload(0, 10), payload(1, 1000)}, 1, 2, 3)
	g.start(2) // with coding
	g.tick(3)
	g.propose(1, payload(2, 1000))
	g.propose(1, payload(3, 1000))
	require.NotZero(t, g.events[raft.CodingEncoded])
	g.requireApplied([][]byte{payload(0, 10), payload(1, 1000), payload(2, 1000), payload(3, 1000)}, 1, 2, 3)
}

// Two of three are replaced by voters that do not code. What is proposed behind the
// change, before it is in force, must reach them to be committed: it is not coded.
func TestVotersThatDoNotCode(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	require.Equal(t, 1, g.events[raft.CodingEncoded])
	g.tick(2)
	for _, id := range g.ids() { // nobody needs that any more
		g.compact(id, g.nodes[id].index)
	}
	g.tick(2)
	cc := &pb.ConfChangeV2{Transition: pb.ConfChangeTransitionJointExplicit.Enum()}
	for _, id := range []uint64{4, 5} {
		g.nodes[id] = &codingNode{id: id, storage: raft.NewMemoryStorage()}
		g.startPlain(id)
		cc.Changes = append(cc.Changes, remove(id-2), &pb.ConfChangeSingle{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(id)})
	}
	n := g.nodes[1]
	require.NoError(t, n.rn.ProposeConfChange(cc))
	change := n.index + 1
	g.drop = func(m *pb.Message) bool { // what comes behind the change is late
		return m.GetType() == pb.MsgApp && len(m.GetEntries()) > 0 && m.GetIndex() >= change
	}
	g.propose(1, payload(1, 1000))
	g.drop = nil
	require.Equal(t, change, n.index)
	_, err := n.storage.CreateSnapshot(n.index, n.conf, encodeAll(n.applied))
	require.NoError(t, err)
	for _, id := range []uint64{4, 5} { // one that it is not a member by
		n.rn.ReportSnapshot(id, raft.SnapshotFailure)
	}
	g.tick(30)
	g.propose(1, payload(2, 1000))
	g.requireApplied([][]byte{payload(0, 1000), payload(1, 1000), payload(2, 1000)}, 1, 4, 5)
}
