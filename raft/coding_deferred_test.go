// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// TestDeferredUnitsLeaveBeforeTheirEntries: what a follower holds back of its units it
// pushes before a snapshot takes the place of the entries; and so does one that has
// applied them, before its host cuts them. Otherwise the others would find them
// nowhere, and would need snapshots in turn.
func TestDeferredUnitsLeaveBeforeTheirEntries(t *testing.T) {
	g := newGroup(t, 3)
	g.gap = 1 << 20
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	want := [][]byte{payload(1, 3000)}
	g.propose(1, want[0])
	leader := g.nodes[1]
	require.Equal(t, want, leader.applied)
	require.Empty(t, g.nodes[2].applied)
	require.Empty(t, g.nodes[3].applied)

	g.compact(1, leader.index)
	snap, err := leader.storage.Snapshot()
	require.NoError(t, err)
	pushed := map[uint64]int{}
	g.drop = func(m *pb.Message) bool {
		if m.GetType() == raft.MsgUnits {
			pushed[m.GetFrom()] += len(m.GetEntries())
		}
		return false
	}
	require.NoError(t, g.nodes[2].rn.Step(&pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(1)), To: new(uint64(2)),
		Term: new(leader.rn.BasicStatus().GetTerm()), Snapshot: snap}))
	g.settle()
	g.requireApplied(want, 2, 3)
	require.Equal(t, map[uint64]int{2: 1, 3: 1}, pushed)
}
