// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// raftType returns the type of a Raft message, or -1.
func raftType(m wire.Message) pb.MessageType {
	if b, ok := m.Body.(wire.Raft); ok {
		return b.GetType()
	}
	return -1
}

// A follower answers each entry once, not also the commit index that follows.
func TestOneAckForAnEntry(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(3)
		count := map[pb.MessageType]int{}
		c.lose = func(m wire.Message) bool { count[raftType(m)]++; return false }
		const commands = 50
		for range commands {
			call := c.propose(1, "x")
			c.settle()
			require.NoError(t, c.result(call).Err)
		}
		require.Equal(t, 2*commands, count[pb.MsgAppResp])
		require.Equal(t, 4*commands, count[pb.MsgApp], "entries, and their commit index")
		require.Len(t, c.agree(), commands)
		c.run(3)
		require.LessOrEqual(t, count[pb.MsgAppResp], 2*commands+2, "one each has waited")
	})
}

// An answer that got lost is given again: without a tick if this node knows of
// the loss, else some ticks later.
func TestLostAckIsGivenAgain(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for name, known := range map[string]bool{"known": true, "unknown": false} {
			t.Run(name, func(t *testing.T) {
				c := newCluster(t, core, 1, 2, 3)
				lead := c.elect(1)
				c.run(3)
				lost := map[uint64]bool{}
				c.lose = func(m wire.Message) bool {
					if raftType(m) != pb.MsgAppResp || lost[m.From] {
						return false
					}
					lost[m.From] = true
					return true
				}
				call := c.propose(1, "x")
				c.settle()
				require.NotContains(t, c.done, call)
				if known {
					c.nodes[2].r.Unreachable(1)
					c.nodes[3].r.Unreachable(1)
					c.run(1) // the leader hears from them, and asks
				} else {
					c.run(4)
				}
				require.NoError(t, c.result(call).Err)
				require.True(t, lead.r.leads())
			})
		}
	})
}

// What waits does not outlive its leader, and goes with a heartbeat's answer.
func TestAcksOrder(t *testing.T) {
	ack := func(to, term, index uint64) *pb.Message {
		return &pb.Message{Type: pb.MsgAppResp.Enum(), To: &to, Term: &term, Index: &index}
	}
	var a acks
	require.True(t, a.put(ack(1, 5, 10), 0))
	require.False(t, a.put(ack(1, 5, 10), 1))
	require.False(t, a.put(ack(1, 5, 9), 2))
	require.Nil(t, a.take(2))
	require.Nil(t, a.late(2))
	require.Equal(t, uint64(9), a.late(3).GetIndex(), "the latest, from when the first came")
	require.Nil(t, a.late(9))

	require.False(t, a.put(ack(1, 5, 10), 9))
	require.True(t, a.put(ack(2, 6, 10), 9), "another leader")
	require.Nil(t, a.take(1))
	require.Nil(t, a.take(2))
	require.True(t, a.put(ack(2, 7, 10), 9), "another term")

	reject := ack(2, 7, 10)
	reject.Reject = new(true)
	require.True(t, a.put(reject, 9))
	require.True(t, a.put(ack(2, 7, 8), 9), "the leader has gone back")

	require.False(t, a.put(ack(2, 7, 8), 9))
	a.lost(1)
	require.False(t, a.put(ack(2, 7, 8), 9))
	a.lost(2)
	require.True(t, a.put(ack(2, 7, 8), 9))
}
