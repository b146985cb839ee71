// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// What a leader sends to a follower that writes nothing is bounded by its
// window, however long that lasts, also if it has come to lead meanwhile, and if
// the transport says that things got lost. Then the follower catches up.
func TestStalledFollowerIsSentOnce(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for name, of := range map[string]struct{ change, lossy bool }{
			"same leader": {}, "new leader": {change: true}, "losses": {lossy: true}, "new leader, losses": {true, true},
		} {
			t.Run(name, func(t *testing.T) { stalledFollower(t, core, of.change, of.lossy) })
		}
	})
}

func stalledFollower(t *testing.T, core NewCore, change, lossy bool) {
	c := newCluster(t, core, 1, 2, 3)
	const window, commands, each = 20_000, 200, 500
	for _, id := range c.ids() {
		c.nodes[id].cfg.MaxInflightBytes, c.nodes[id].cfg.MaxAppendBytes = window, 5000
		c.start(c.nodes[id])
	}
	lead := c.elect(1)
	c.run(2)
	stuck := c.stall(3)
	sent := 0
	c.lose = func(m wire.Message) bool {
		if raft, ok := m.Body.(wire.Raft); ok && m.To == 3 && raft.GetType() == pb.MsgApp {
			sent += proto.Size(raft.Message)
		}
		return false
	}
	for i := range commands {
		call := c.propose(1, strings.Repeat("x", each))
		c.settle()
		if change && i == commands/2 {
			require.NoError(t, c.result(call).Err)
			lead.r.TransferLeader(call+1000, 2, c.now+50*tick)
			c.run(5)
			lead = c.nodes[2]
			require.True(t, lead.r.leads())
		}
	}
	for i := range 200 {
		if lossy && i%10 == 0 {
			lead.r.Unreachable(3)
		}
		c.run(1)
	}
	leaders := 1
	if change {
		leaders++
	}
	t.Logf("sent %d bytes, of %d; %d repeats", sent, commands*each, lead.r.Status().Counters.Repeats)
	require.Less(t, sent, leaders*(2*window)+200*100, "the window, and a small message each tick")

	before := sent
	c.unstall(stuck)
	c.run(10)
	require.Equal(t, c.nodes[1].sm.applied, stuck.sm.applied, "it catches up")
	require.Len(t, c.agree(), commands)
	require.Less(t, sent-before, 3*commands*each)
}
