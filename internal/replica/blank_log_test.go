// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"
)

// The log of a node that joins hangs from the start. Heartbeats do not wait for it, so the leader knows that the node is there,
// and sends a snapshot once its own log begins later. If the node restored the snapshot, a crash would leave a state without
// a log, as after the loss of a log, and the node would have to be replaced.
func TestNothingIsRestoredBeforeTheLogHasAnything(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		for _, n := range c.nodes {
			n.r.cfg.RetainEntries = 1
		}
		joins := c.add(4, nil)
		joins.hung = true
		c.calls++
		c.nodes[1].r.ProposeConfChange(c.calls, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(4))}}}, c.now+100*tick)
		for i := range 30 {
			c.propose(1, fmt.Sprint(i))
			c.settle()
			c.run(1)
		}
		require.NotZero(t, c.nodes[1].r.count.SnapshotsFailed+c.nodes[1].r.count.SnapshotsSent)
		require.Zero(t, joins.sm.index)
		c.start(joins) // it has crashed
		c.run(electionTicks)
		joins.hung = false
		c.settle()
		c.run(2 * electionTicks)
		require.Len(t, c.agree(), 30)
	})
}
