// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// A call may have waited before the replica sees it.
func TestCallPastItsDeadlineIsRefused(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(2)
		r := c.nodes[1].r
		learner := (&pb.ConfChange{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(3))}).AsV2()
		begun := []func(Call){
			func(call Call) { r.Propose(call, []byte("late"), c.now) },
			func(call Call) { r.ReadWith(call, ReadOptions{Policy: Local{}}, c.now) },
			func(call Call) { r.ProposeConfChange(call, learner, c.now) },
			func(call Call) { r.ForceConfChange(call, learner, c.now) },
			func(call Call) { r.TransferLeader(call, 2, c.now) },
		}
		for _, begin := range begun {
			c.calls++
			begin(c.calls)
			c.settle()
			require.ErrorIs(t, c.result(c.calls).Err, ErrRefused)
			require.ErrorIs(t, c.result(c.calls).Err, ErrTimeout)
		}
		c.run(20)
		require.True(t, r.leads())
		require.Empty(t, c.agree())
		require.Empty(t, r.Status().Members.GetLearners())
	})
}

// Wishes for a leader that have ended are forgotten, also while the group has no leader.
func TestEndedWishesForALeaderAreForgotten(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.lose = func(wire.Message) bool { return true }
	for range 3 {
		c.calls++
		c.nodes[1].r.TransferLeader(c.calls, 2, c.now+tick)
		c.run(2)
		require.ErrorIs(t, c.result(c.calls).Err, ErrNoLeader)
	}
	require.Empty(t, c.nodes[1].r.moves.wanted)
}
