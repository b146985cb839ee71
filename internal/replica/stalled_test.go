// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

var errDiskFull = errors.New("no space left on device")

// stall has a node's log take nothing.
func (c *cluster) stall(id uint64) *node {
	n := c.nodes[id]
	n.held = true
	_ = n.r.Stalled(errDiskFull)
	return n
}

func (c *cluster) unstall(n *node) {
	n.held = false
	_ = n.r.Stalled(nil)
}

// A leader whose disk is full hands over, to a member that has room; it takes no
// commands, says why, and is a member like others when it has room again.
func TestStalledLeaderHandsOver(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3, 4, 5)
		c.elect(1)
		c.run(2)
		first := c.propose(1, "first")
		c.settle()
		require.NoError(t, c.result(first).Err)
		c.stall(2) // where the first attempt goes
		n := c.stall(1)
		under := c.propose(3, "under way")
		c.run(2 * 12)
		require.True(t, c.nodes[3].r.leads(), "the next that has room leads")
		require.ErrorIs(t, n.r.Status().Stalled, errDiskFull)
		c.unstall(c.nodes[2])
		c.run(3)
		require.NoError(t, c.result(under).Err, "the group goes on")

		refused := c.propose(1, "refused")
		c.calls++
		c.nodes[1].r.ProposeConfChange(c.calls, &pb.ConfChangeV2{}, c.now+100*tick)
		c.settle()
		for _, call := range []Call{refused, c.calls} {
			err := c.result(call).Err
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorIs(t, err, ErrStalled)
			require.ErrorIs(t, err, errDiskFull)
		}
		c.unstall(n)
		c.run(3)
		again := c.propose(1, "again")
		c.settle()
		c.run(1)
		require.NoError(t, c.result(again).Err)
		require.Nil(t, n.r.Status().Stalled)
		require.Equal(t, uint64(1), n.r.Status().Counters.Stalls)
		require.Equal(t, []string{"first", "under way", "again"}, c.agree())
	})
}

// A node whose disk is full asks nobody for a vote while others may, and a leader is
// elected without it.
func TestStalledNodeDoesNotCampaign(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(2)
		term := c.nodes[1].r.state.Term
		for _, id := range c.ids() {
			c.stall(id)
		}
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			require.False(t, ok && raft.GetType() >= pb.MsgPreVote && raft.GetType() <= pb.MsgPreVoteResp, "%v", m)
			return m.From == 1 || m.To == 1
		}
		c.run(lastResort * 10)
		require.ErrorIs(t, c.nodes[2].r.Campaign(), ErrStalled)
		for _, id := range []uint64{2, 3} {
			require.Equal(t, term, c.nodes[id].r.state.Term)
			c.unstall(c.nodes[id])
		}
		c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		call := c.propose(2, "x")
		c.run(60)
		require.NoError(t, c.result(call).Err)
	})
}

// A follower without room can still write its vote. It goes on to measure the silence
// of its leader, and votes for a member that has room when that leader is gone. A
// candidate that comes a tick too early is refused, and comes again within two election
// timeouts; until then no stalled node campaigns.
func TestStalledFollowerVotesWhenItsLeaderIsGone(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for _, tt := range []struct {
			members, stalled, dead []uint64
			alive                  uint64 // and has room
		}{
			{[]uint64{1, 2, 3}, []uint64{2}, []uint64{1}, 3},
			{[]uint64{1, 2, 3, 4, 5}, []uint64{2, 4}, []uint64{1}, 5},
		} {
			c := newCluster(t, core, tt.members...)
			c.elect(1)
			c.run(2)
			for _, id := range tt.stalled {
				_ = c.nodes[id].r.Stalled(errDiskFull)
			}
			c.run(2)
			c.lose = func(m wire.Message) bool { return slices.Contains(tt.dead, m.From) || slices.Contains(tt.dead, m.To) }
			for range lastResort * 10 {
				if !c.nodes[tt.alive].r.leads() {
					c.run(1)
				}
			}
			call := c.propose(tt.alive, "x")
			c.run(2)
			require.NoError(t, c.result(call).Err)
		}
	})
}

// A follower without room has entries that the only other living member lacks, and
// would not vote for it. So it campaigns after all, and hands over what it has, and
// the leadership, to the member that has room.
func TestStalledFollowerCampaignsIfNobodyElseCanWin(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(2)
		_ = c.nodes[2].r.Stalled(errDiskFull)
		c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
		call := c.propose(1, "x")
		c.settle()
		require.NoError(t, c.result(call).Err)
		c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		for range 20 * 10 {
			if !c.nodes[3].r.leads() {
				c.run(1)
			}
		}
		require.True(t, c.nodes[3].r.leads())
		c.run(2)
		require.Equal(t, []string{"x"}, c.nodes[3].sm.applied)
	})
}

// What a leader keeps in memory while its disk is stuck is bounded, also if it
// does not know that the disk is stuck and the others go on committing.
func TestStuckLeaderIsBounded(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		for _, id := range c.ids() {
			c.nodes[id].cfg.MaxUncommittedBytes = 1000
			c.nodes[id].cfg.MaxQueueBytes, c.nodes[id].cfg.MaxCommandBytes = 2000, 100
			c.start(c.nodes[id])
		}
		n := c.elect(1)
		c.run(2)
		n.held = true
		var calls []Call
		for i := range 500 {
			calls = append(calls, c.propose(1, fmt.Sprintf("%050d", i)))
			c.settle()
		}
		waiting := 0
		for _, a := range n.appends {
			for _, e := range a.Write.Entries {
				waiting += len(e.GetData())
			}
		}
		require.NotZero(t, waiting)
		require.LessOrEqual(t, waiting, 1000)
		require.LessOrEqual(t, n.r.Status().Queued, 2000)
		require.True(t, n.r.leads(), "nobody told it")
		n.held = false
		c.run(120)
		applied := 0
		for _, call := range calls {
			if err := c.result(call).Err; err == nil {
				applied++
			} else {
				require.ErrorIs(t, err, ErrRefused)
				require.ErrorIs(t, err, ErrOverloaded)
			}
		}
		require.Len(t, c.agree(), applied)
	})
}
