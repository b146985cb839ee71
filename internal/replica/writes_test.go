// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// Each command is written once at each node: a commit index by itself is not.
func TestOneWriteForEachEntry(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(5)
		before := map[uint64]uint64{}
		for _, id := range c.ids() {
			before[id] = c.nodes[id].r.count.Appends
		}
		const n = 50
		for i := range n {
			c.propose(1, fmt.Sprint(i))
			c.settle()
		}
		c.run(5)
		require.Len(t, c.agree(), n)
		for _, id := range c.ids() {
			require.Equal(t, uint64(n), c.nodes[id].r.count.Appends-before[id], "node %d", id)
		}
		// And it is in the log with the next write, all the same.
		hs, _, err := c.nodes[2].log.InitialState()
		require.NoError(t, err)
		require.Less(t, hs.GetCommit(), c.nodes[2].r.state.Commit)
		require.GreaterOrEqual(t, hs.GetCommit(), c.nodes[2].r.state.Commit-2)
	})
}

// An answer that needs no write of its own leaves when what it rests on is
// durable, and not before.
func TestAnswersRideOnWrites(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(2)
		n := c.nodes[3]
		n.held = true
		answers := 0
		c.lose = func(m wire.Message) bool {
			if raft, ok := m.Body.(wire.Raft); ok && m.From == 3 && raft.GetIndex() > 0 {
				answers++
			}
			return m.To == 2
		}
		call := c.propose(1, "x")
		c.run(3) // the leader asks again with each heartbeat
		require.NotContains(t, c.done, call)
		require.Zero(t, answers)
		n.held = false
		c.settle()
		require.NotZero(t, answers)
		require.NoError(t, c.result(call).Err)
		require.Empty(t, n.r.writes.riders)
	})
}

// stuckDisk returns a cluster, and its node 3, which has a write under way that
// does not end while the node is held.
func stuckDisk(t *testing.T) (*cluster, *node) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.run(2)
	n := c.nodes[3]
	n.held = true
	c.propose(1, "x")
	c.settle()
	return c, n
}

// A disk that is stuck does not let answers pile up.
func TestRidersAreBounded(t *testing.T) {
	c, n := stuckDisk(t)
	for range 3 * maxRiders {
		c.nodes[1].r.Unreachable(3)
		c.run(1)
	}
	require.Len(t, n.r.writes.riders, 1)
	require.Len(t, n.r.writes.riders[0].responses, maxRiders)
	n.held = false
	c.run(5)
	require.Len(t, c.agree(), 1)
}

// What a node tells itself behind a write is told whole: how far its log is durable,
// the latest word of it, and that it would vote for itself.
func TestOwnWordsRideTogether(t *testing.T) {
	_, n := stuckDisk(t)
	word := func(typ pb.MessageType, index uint64) *pb.Message {
		return &pb.Message{Type: &typ, To: new(uint64(3)), Index: &index}
	}
	vote, late := word(pb.MsgPreVoteResp, 0), word(pb.MsgStorageAppendResp, 8)
	n.r.writes.riders = nil
	n.r.writes.ride(n.cfg.ID, []*pb.Message{vote, word(pb.MsgStorageAppendResp, 7)})
	n.r.writes.ride(n.cfg.ID, []*pb.Message{late})
	require.Len(t, n.r.writes.riders, 1)
	require.Equal(t, []*pb.Message{vote, late}, n.r.writes.riders[0].own)
}
