// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// requireRest lets ticks pass in which nobody proposes anything, and requires that the
// group sends heartbeats and nothing else.
func (g *group) requireRest(ticks int) {
	g.t.Helper()
	sent := map[pb.MessageType]int{}
	drop := g.drop
	g.drop = func(m *pb.Message) bool {
		if t := m.GetType(); t != pb.MsgHeartbeat && t != pb.MsgHeartbeatResp {
			sent[t]++
		}
		return drop != nil && drop(m)
	}
	g.tick(ticks)
	g.drop = drop
	require.Empty(g.t, sent)
}

// TestLeaderAsksForNothingAtRest: a leader asked others for units of an entry that a
// member lacked, which had been down. All others have compacted the entry, so that member
// was sent a snapshot in its place; then nobody needs the entry any more, and the leader
// asks no more.
func TestLeaderAsksForNothingAtRest(t *testing.T) {
	g := newGroup(t, 5)
	g.reports = true
	g.elect(1)
	g.stop(5)
	g.tick(5)
	want := [][]byte{payload(1, 3000)}
	g.propose(1, want[0])
	g.tick(5)
	g.start(2) // what it had in memory is gone
	g.tick(5)
	g.nodes[1].rn.TransferLeader(2)
	g.tick(5)
	leader := g.nodes[2]
	require.Equal(t, raft.StateLeader, leader.rn.BasicStatus().RaftState)
	for _, id := range []uint64{1, 3, 4} {
		g.requireApplied(want, id)
		g.compact(id, g.nodes[id].index)
	}
	_, conf, err := leader.storage.InitialState()
	require.NoError(t, err)
	_, err = leader.storage.CreateSnapshot(leader.index, conf, encodeAll(leader.applied))
	require.NoError(t, err)

	g.start(5)
	g.tick(100)
	require.NotZero(t, g.events[raft.CodingAsked])
	g.requireApplied(want, 5)
	g.requireRest(40)
}
