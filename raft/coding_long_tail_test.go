// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// TestLongTailIsRecovered: all lose power with a tail that is not known to be
// committed, of so many bytes that units of it come in far more answers than an
// election timeout has time for. Who wins goes on as long as answers bring
// something.
func TestLongTailIsRecovered(t *testing.T) {
	g := newGroup(t, 3)
	g.memory = 2 << 20
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	g.propose(1, payload(0, 500))
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgAppResp
	}
	want := [][]byte{payload(0, 500)}
	for i := range 40 {
		want = append(want, payload(1+i, 1<<20))
		g.propose(1, want[1+i])
	}
	answers := 0
	g.drop = func(m *pb.Message) bool { // all answers but one in a tick
		if m.GetType() != raft.MsgUnits || m.GetContext()[0] != 'r' {
			return false
		}
		answers++
		return answers > 1
	}
	g.start(2)
	g.start(3)
	g.stop(1)
	for range 240 {
		answers = 0
		g.tick(1)
	}
	g.requireApplied(want, 2, 3)
}

// TestWinnerReadsNoPayloadAgain: a winner has the whole payload of an entry of its tail in its
// log, and waits for units of the next one. It does not read the first with each message.
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
