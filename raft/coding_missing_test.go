// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// A follower without the units of others lacks what it was not given; the leader and a
// follower that was completed lack nothing.
func TestStatusTellsHowManyUnitsAreMissing(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	// Units reach followers, and nobody hears of commits, which would end an entry's place in
	// the status.
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgApp && len(m.GetEntries()) == 0
	}
	g.propose(1, payload(1, 3000))
	looked := 0
	for _, id := range []uint64{2, 3, 4, 5} {
		entries := g.nodes[id].rn.CodingStatus().Entries
		if len(entries) == 0 {
			continue
		}
		e := entries[len(entries)-1]
		require.False(t, e.Complete, "node %d", id)
		require.Positive(t, e.Missing, "node %d", id)
		require.Equal(t, e.D-e.Units[id], e.Missing, "node %d", id)
		looked++
	}
	require.Positive(t, looked)
	for _, e := range g.nodes[1].rn.CodingStatus().Entries {
		require.Zero(t, e.Missing)
	}
	g.drop = nil
	g.tick(10)
	g.requireApplied([][]byte{payload(1, 3000)}, g.ids()...)
	for _, id := range g.ids() {
		for _, e := range g.nodes[id].rn.CodingStatus().Entries {
			require.True(t, e.Complete)
			require.Zero(t, e.Missing)
		}
	}
}
