// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// wipe starts a node from nothing, under its old id.
func (c *cluster) wipe(id uint64, peers []uint64) *node {
	n := c.nodes[id]
	n.log, n.sm = newMemLog(), &journal{}
	n.cfg.Log, n.cfg.Peers, n.wiped = n.log, peers, true
	c.start(n)
	return n
}

// A node whose log was lost stops within an election timeout, and says what to do. Its
// leader knows what it is.
func TestNodeThatLostItsLogStops(t *testing.T) {
	for name, peers := range map[string][]uint64{"started as before": {1, 2, 3}, "started to join": nil} {
		t.Run(name, func(t *testing.T) {
			bothCores(t, func(t *testing.T, core NewCore) {
				c := newCluster(t, core, 1, 2, 3)
				lead := c.elect(1)
				c.propose(1, "x")
				c.run(2)
				acknowledged := lead.r.Status().Progress[3].Match
				require.Equal(t, lead.r.last, acknowledged)

				n := c.wipe(3, peers)
				c.lose = func(m wire.Message) bool {
					if raft, ok := m.Body.(wire.Raft); ok && m.From == 3 {
						require.NotEqual(t, pb.MsgVote, raft.GetType(), "it campaigns")
					}
					return false
				}
				c.run(1)
				status := lead.r.Status()
				require.True(t, status.Progress[3].LogLost)
				require.False(t, status.Progress[2].LogLost)
				require.NoError(t, n.r.Err(), "one heartbeat may be wrong")

				c.run(n.r.cfg.ElectionTick)
				require.ErrorIs(t, n.r.Err(), ErrLogLost)
				require.ErrorContains(t, n.r.Err(), "node 1 leads, and knows that node 3 has acknowledged index")
				require.ErrorContains(t, n.r.Err(), "start a new node with another id and an empty directory")

				c.run(50)
				require.Equal(t, status.Term, lead.r.Status().Term, "the others notice nothing")
				require.True(t, lead.r.Status().Progress[3].LogLost)
				call := c.propose(2, "y")
				c.run(2)
				require.NoError(t, c.result(call).Err)
			})
		})
	}
}

// A leader hands over to no member whose log it knows to be lost: the member would lose the election, at the cost of a term.
func TestLeaderHandsOverToNoMemberThatLostItsLog(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		lead := c.elect(1)
		c.run(2)
		c.wipe(2, []uint64{1, 2, 3})
		c.run(1)
		status := lead.r.Status()
		require.True(t, status.Progress[2].LogLost)
		require.GreaterOrEqual(t, status.Progress[2].Match, status.Progress[3].Match, "as far as it has acknowledged")
		require.Equal(t, []uint64{3}, lead.r.placing.heirs([]uint64{1, 2, 3}))
		c.stall(1)
		c.run(3)
		require.True(t, c.nodes[3].r.leads())
		require.Equal(t, status.Term+1, c.nodes[3].r.state.Term)
	})
}

// A node goes on that hears of entries which it has not from a peer that is no leader,
// and from its leader what fits.
func TestNodeThatIsToldOfWhatItHasNotGoesOn(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for lead := range uint64(3) {
			for later := range uint64(2) {
				c := newCluster(t, core, 1, 2, 3)
				c.elect(lead + 1)
				c.run(2)
				r := c.nodes[1].r
				c.lose = func(m wire.Message) bool { // what node 2 is answered, which has not said that
					raft, ok := m.Body.(wire.Raft)
					return ok && m.From == 1 && m.To == 2 && raft.GetReject()
				}
				for range 10 * r.cfg.ElectionTick {
					_ = r.Receive(received(pb.MsgHeartbeat, func(m *pb.Message) { m.Term, m.Commit = new(r.state.Term+later), new(r.last+50) }))
					c.run(1)
					require.NoError(t, r.Err())
				}
				require.Equal(t, lead+1, r.state.Lead)
			}
		}
	})
}

// A leader that is told that a member's log ends early takes that back when the member
// acknowledges something: the word was an old one.
func TestMemberThatAcknowledgesHasNotLostItsLog(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		lead := c.elect(1)
		c.run(2)
		require.NoError(t, lead.r.Receive(received(pb.MsgAppResp, func(m *pb.Message) {
			m.Term, m.Index, m.Reject, m.RejectHint = new(lead.r.state.Term), new(lead.r.last), new(true), new(uint64(0))
		})))
		require.True(t, lead.r.Status().Progress[2].LogLost)
		c.run(2)
		require.False(t, lead.r.Status().Progress[2].LogLost)
	})
}
