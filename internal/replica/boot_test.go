// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// The clock of a node's machine is set back. The node starts, and a batch of it is applied by the others. It starts once more, with such
// a clock and without having heard of the batch: the batch is not the next life's, and its result not that of another command.
func TestStartsWithAClockThatWasSetBackAreToldApart(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		n := c.nodes[2]
		n.boots = 1000
		c.start(n)
		c.run(3)
		c.propose(2, "before")
		c.run(3)

		n.boots = 5
		c.start(n)
		first := n.r.reads.boot
		c.run(3)
		n.held = true
		c.propose(2, "one")
		c.run(3)
		require.Equal(t, []string{"before", "one"}, c.nodes[1].sm.applied)

		n.held = false
		c.start(n)
		call := c.propose(2, "another")
		c.run(30)
		require.Equal(t, "did another", c.result(call).Result)
		require.Equal(t, []string{"before", "one", "another"}, c.agree())
		require.NotEqual(t, first, n.r.reads.boot, "an answer to a read of the former life fits no read")
	})
}

// The same at a gateway, whose home has not applied the batch when the gateway starts once more.
func TestStartsOfAGatewayWithAClockThatWasSetBackAreToldApart(t *testing.T) {
	c := newGated(t, func(s *Settings) { s.Boot = 1000 }, 1, 2, 3)
	c.elect(1)
	c.run(30)
	c.propose("before")
	c.run(3)

	c.g = c.newGateway(5, nil)
	c.run(60)
	c.lose = func(m wire.Message) bool { // nothing is committed
		r, ok := m.Body.(wire.Raft)
		return ok && r.GetType() == pb.MsgAppResp
	}
	c.propose("one")
	c.run(3)

	c.g = c.newGateway(6, nil)
	c.run(60)
	call := c.propose("another")
	c.run(3)
	c.lose = func(wire.Message) bool { return false }
	c.run(60)
	require.Equal(t, "did another", string(c.result(call).Result.([]byte)))
	require.Equal(t, []string{"before", "one", "another"}, c.agree())
}
