// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !invariants

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// TestWinnerReadsNoPayloadAgain: a winner has the whole payload of an entry of its tail in its
// log, and waits for units of the next one. It does not read the first with each message, as
// checks of invariants do.
func TestWinnerReadsNoPayloadAgain(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.stop(3)
	g.drop = func(m *pb.Message) bool {
		return m.GetFrom() == 2 && m.GetType() == pb.MsgAppResp || m.GetType() == raft.MsgUnits
	}
	g.tick(5)
	g.propose(1, payload(1, 10000))
	whole, hdr := g.lastCoded(2)
	require.True(t, hdr.Whole(2))
	g.start(3)
	g.tick(2)
	g.propose(1, payload(2, 10000))
	_, hdr = g.lastCoded(2)
	require.False(t, hdr.Whole(2))
	g.stop(1)
	g.drop = func(m *pb.Message) bool { return m.GetType() == raft.MsgUnits }
	require.NoError(t, g.nodes[3].rn.ForgetLeader())
	require.NoError(t, g.nodes[2].rn.Campaign())
	g.settle()
	require.NotZero(t, g.events[raft.CodingRecovery])
	g.reads = func(id, lo uint64) { require.False(t, id == 2 && lo == whole.GetIndex()) }
	for range 20 {
		require.NoError(t, g.nodes[2].rn.Step(&pb.Message{
			Type: pb.MsgHeartbeatResp.Enum(), From: new(uint64(3)), To: new(uint64(2)), Term: new(g.nodes[2].rn.BasicStatus().GetTerm()),
		}))
	}
	g.reads, g.drop = nil, nil
	g.tick(10)
	g.requireApplied([][]byte{payload(1, 10000), payload(2, 10000)}, 2, 3)
}
