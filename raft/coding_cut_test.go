// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// TestWhatIsCutIsForgotten: a new leader cuts entries from its log that nobody can have
// committed. From then on it keeps nothing of them, and asks nobody for them.
func TestWhatIsCutIsForgotten(t *testing.T) {
	g := newGroup(t, 5)
	g.policy = func() ecraft.Policy { return ecraft.Fixed(3) }
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	g.propose(1, payload(0, 10))
	g.tick(3)
	g.drop = func(m *pb.Message) bool { return m.GetFrom() == 1 && m.GetTo() != 2 || m.GetType() == raft.MsgUnits }
	for i := range 3 {
		g.propose(1, payload(1+i, 3000)) // two of six units at node 2, and nowhere else
	}
	g.stop(1)
	g.drop = nil
	g.tick(60)
	lead := g.nodes[3].rn.BasicStatus().Lead
	require.NotZero(t, lead)
	require.NotZero(t, g.events[raft.CodingCut], "the leader has cut its log")
	for i := range 5 {
		g.propose(lead, payload(10+i, 10))
	}
	g.tick(5)
	for _, id := range []uint64{2, 3, 4, 5} {
		require.Zero(t, g.nodes[id].rn.CodingStatus().Memory, "node %d", id)
	}
	asked := g.events[raft.CodingAsked]
	g.tick(40)
	require.Equal(t, asked, g.events[raft.CodingAsked])
}
