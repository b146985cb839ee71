// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// newBehind returns a cluster in which the log has a batch of node 3 with a boot far above those of its next starts: its
// clock was set back. The node has been started again since.
func newBehind(t *testing.T, core NewCore) (*cluster, *node) {
	c := newCluster(t, core, 1, 2, 3)
	c.elect(1)
	n := c.nodes[3]
	n.boots = 1000
	c.start(n)
	c.run(2)
	first := c.propose(3, "first")
	c.run(2)
	require.NoError(t, c.result(first).Err)
	n.boots = 4
	c.start(n)
	c.run(2)
	return c, n
}

// A batch of an earlier life of a node is still on its way when the node, whose clock was set back, has taken the next
// command. The caller is told what became of that command, and not of the other one.
func TestBatchOfAnEarlierLifeIsNotTakenForAnother(t *testing.T) {
	for name, boots := range map[string]uint64{"the clock goes on": 6, "it is set back once more": 2} {
		t.Run(name, func(t *testing.T) {
			bothCores(t, func(t *testing.T, core NewCore) {
				c, n := newBehind(t, core)
				c.lose = func(m wire.Message) bool { return m.To == 3 }
				c.propose(3, "earlier")
				c.settle()
				n.boots = boots
				c.start(n)
				// Node 3 hears who leads, and takes a command before it gets the batch.
				c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
				c.run(1)
				call := c.propose(3, "later")
				c.run(1)
				c.lose = func(wire.Message) bool { return false }
				c.run(30)
				require.NoError(t, c.result(call).Err)
				require.Equal(t, "did later", c.result(call).Result)
				require.ElementsMatch(t, []string{"first", "earlier", "later"}, c.agree())
			})
		})
	}
}

// The same for an answer to a read.
func TestAnswerToAReadOfAnEarlierLifeDoesNotCount(t *testing.T) {
	for name, policy := range map[string]ReadPolicy{"leader": ReadIndex{}, "majority": QuorumRead{}} {
		t.Run(name, func(t *testing.T) {
			bothCores(t, func(t *testing.T, core NewCore) {
				c, n := newBehind(t, core)
				var late []wire.Message
				c.lose = func(m wire.Message) bool {
					b, ok := m.Body.(wire.Raft)
					answers := m.To == 3 && (m.Kind() == wire.KindLogEnd || ok && b.GetType() == pb.MsgReadIndexResp)
					if answers {
						late = append(late, m)
					}
					return answers
				}
				c.readWith(3, ReadOptions{Policy: policy})
				c.settle()
				require.NotEmpty(t, late)
				c.start(n)
				c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
				c.run(2)
				c.lose = func(m wire.Message) bool { return m.To == 3 || m.From == 3 }
				write := c.propose(1, "a")
				c.run(1)
				require.NoError(t, c.result(write).Err)
				read := c.readWith(3, ReadOptions{Policy: policy})
				c.turn(n)
				for _, m := range late {
					require.NoError(t, n.r.Receive(m))
				}
				c.turn(n)
				require.NotContains(t, c.done, read, "it would miss the write")
			})
		})
	}
}
