// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// lateCluster is a group of n whose leader, node 1, has applied a command.
func lateCluster(t *testing.T, core NewCore, n uint64) *cluster {
	var ids []uint64
	for id := uint64(1); id <= n; id++ {
		ids = append(ids, id)
	}
	c := newCluster(t, core, ids...)
	c.elect(1)
	c.run(2)
	return c
}

// hang lets a node's disk hang, and gives its log something to write.
func (c *cluster) hang(ids ...uint64) {
	for _, id := range ids {
		c.nodes[id].hung = true
	}
	c.propose(1, "under way")
	c.settle()
}

// electionTicks is the election timeout of nodes in a cluster.
const electionTicks = 10

// A leader whose disk hangs, with no error from anywhere, hands over an election timeout later to a
// member whose disk does not. Meanwhile it takes no commands, from no node; the group goes on; and when
// the disk goes on, so does the node.
func TestLeaderWithLateDiskHandsOver(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 5)
		c.hang(1, 2)
		n := c.nodes[1]
		c.run(electionTicks)
		require.True(t, n.r.leads(), "not late yet")
		require.NoError(t, n.r.Status().Stalled)
		c.run(3)
		require.False(t, n.r.leads())
		require.NotZero(t, c.nodes[3].r.Leader())
		require.NotContains(t, []uint64{1, 2}, c.nodes[3].r.Leader(), "nodes with disks that hang")
		require.ErrorIs(t, n.r.Status().Stalled, storage.ErrLate)

		refused, forwarded := c.propose(1, "refused"), c.propose(3, "forwarded")
		c.settle()
		c.run(1)
		require.ErrorIs(t, c.result(refused).Err, ErrRefused)
		require.ErrorIs(t, c.result(refused).Err, ErrStalled)
		require.ErrorIs(t, c.result(refused).Err, storage.ErrLate)
		require.NoError(t, c.result(forwarded).Err)

		n.hung, c.nodes[2].hung = false, false
		c.settle()
		c.run(1)
		require.NoError(t, n.r.Status().Stalled)
		again := c.propose(1, "again")
		c.settle()
		c.run(1)
		require.NoError(t, c.result(again).Err)
		require.Equal(t, uint64(1), n.r.Status().Counters.Stalls)
		require.Equal(t, []string{"under way", "forwarded", "again"}, c.agree())
	})
}

// A leader that cannot hand over, because each order to campaign is lost, falls silent an election
// timeout later, and steps down. The others elect one of themselves, and go on.
func TestLeaderWithLateDiskFallsSilentIfNobodyTakesOver(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 3)
		orders := 0
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			ok = ok && raft.GetType() == pb.MsgTimeoutNow
			if ok {
				orders++
			}
			return ok
		}
		c.hang(1)
		c.run(2*electionTicks + 3)
		require.NotZero(t, orders)
		term := c.nodes[1].r.state.Term
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			if ok && m.From == 1 && raft.GetTerm() == term {
				require.NotContains(t, []pb.MessageType{pb.MsgHeartbeat, pb.MsgApp}, raft.GetType())
			}
			return false
		}
		for range 20 * electionTicks {
			if c.nodes[1].r.leads() || c.nodes[2].r.Leader() == 0 {
				c.run(1)
			}
		}
		require.False(t, c.nodes[1].r.leads())
		call := c.propose(2, "x")
		c.settle()
		c.run(1)
		require.NoError(t, c.result(call).Err)
	})
}

// A silent leader that nobody can hear of steps down by itself, because it hears of no quorum.
func TestSilentLeaderStepsDown(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 3)
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			return ok && (raft.GetType() == pb.MsgTimeoutNow || raft.GetType() == pb.MsgPreVote)
		}
		c.hang(1)
		term := c.nodes[1].r.state.Term
		c.run(4*electionTicks + 3)
		require.False(t, c.nodes[1].r.leads())
		require.Equal(t, term, c.nodes[1].r.state.Term)
	})
}

// Where all disks are equally slow, another leader would be no better: the leader stays, and what was
// under way is done when the disks go on.
func TestLeaderStaysIfNoMajorityIsFaster(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for _, hung := range [][]uint64{{1, 2, 3}, {1, 2, 4}, {1, 2, 3, 4, 5}} {
			c := lateCluster(t, core, 5)
			c.hang(hung...)
			call := c.propose(3, "x")
			c.run(3 * electionTicks)
			require.ErrorIs(t, c.nodes[1].r.Status().Stalled, storage.ErrLate)
			require.True(t, c.nodes[1].r.leads())
			for _, id := range hung {
				c.nodes[id].hung = false
			}
			c.settle()
			c.run(2)
			require.NoError(t, c.result(call).Err)
			require.True(t, c.nodes[1].r.leads())
		}
	})
}

// A disk that is slow and gets on is not late, however much waits.
func TestDiskThatGetsOnIsNotLate(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 3)
		n := c.nodes[1]
		n.hung = true
		for i := range 10 * electionTicks {
			c.propose(1, fmt.Sprint(i))
			c.run(1)
			if i%(electionTicks-1) == 0 && len(n.appends) > 0 {
				a := n.appends[0]
				n.appends = n.appends[1:]
				require.NoError(t, n.log.Append(a.Write, nil))
				n.r.AppendDone(a)
			}
			require.NoError(t, n.r.Status().Stalled)
		}
		require.True(t, n.r.leads())
	})
}

// A node whose disk hangs asks for no votes however long there is no leader, because it could not
// vote for itself either.
func TestNodeWithLateDiskNeverCampaigns(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 3)
		c.hang(2)
		c.run(electionTicks + 1)
		c.lose = func(m wire.Message) bool {
			if raft, ok := m.Body.(wire.Raft); ok && m.From == 2 {
				require.NotContains(t, []pb.MessageType{pb.MsgPreVote, pb.MsgVote}, raft.GetType())
			}
			return true
		}
		c.run(10 * lastResort * electionTicks)
		require.ErrorIs(t, c.nodes[2].r.Campaign(), storage.ErrLate)
		require.Equal(t, raft.StateFollower, c.nodes[2].r.Status().Role)
		c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		c.nodes[2].hung = false
		c.settle()
		call := c.propose(2, "x")
		c.run(4 * electionTicks)
		require.NoError(t, c.result(call).Err, "it votes, or leads, again")
	})
}

// busyElsewhere is a log whose engine has a write of another group that does not end.
type busyElsewhere struct{ memLog }

func (busyElsewhere) Progress() (uint64, bool) { return 5, true }

// A write of another group, on the same disk, moves the leader of a group without writes.
func TestLateWriteOfAnotherGroupMovesIdleLeader(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 3)
		c.nodes[1].hung, c.nodes[1].r.cfg.Log = true, busyElsewhere{c.nodes[1].log}
		c.run(electionTicks + 3)
		require.ErrorIs(t, c.nodes[1].r.Status().Stalled, storage.ErrLate)
		require.False(t, c.nodes[1].r.leads())
		require.NotZero(t, c.nodes[2].r.Leader())
	})
}

// A leader whose disk hangs falls silent, and so does not send the snapshot that its core wants sent just then. The disk goes
// on before the leader has stepped down: the member gets its snapshot.
func TestSnapshotThatASilentLeaderDidNotSendIsSentLater(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core)
		c.tune = func(cfg *Config) { cfg.RetainEntries = 20 }
		for _, id := range []uint64{1, 2, 3, 4, 5} {
			c.add(id, []uint64{1, 2, 3, 4, 5})
		}
		n := c.elect(1)
		c.run(2)
		var word *wire.Message // of node 5, under way
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			if ok && m.From == 5 && raft.GetType() == pb.MsgHeartbeatResp {
				word = &m
			}
			return m.From == 5 || m.To == 5 && raft.GetType() != pb.MsgHeartbeat || ok && raft.GetType() == pb.MsgTimeoutNow
		}
		n.r.Unreachable(5)
		for range 10 {
			write(c, 10)
		}
		c.hang(1)
		for !n.r.stall.silent {
			c.run(1)
		}
		c.wires, word = append(c.wires, *word), nil
		c.lose = func(wire.Message) bool { return false }
		c.settle()
		require.True(t, n.r.stall.silent)
		n.hung = false
		c.settle()
		require.True(t, n.r.leads())
		c.run(3)
		require.True(t, n.r.leads())
		require.EqualValues(t, 1, c.nodes[5].r.count.SnapshotsInstalled)
		c.agree()
	})
}

// What a follower keeps while its disk hangs is bounded by what a leader has in flight, whoever leads meanwhile.
func TestFollowerWithLateDiskIsBounded(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		const inflight = 4000
		c := newCluster(t, core)
		c.tune = func(cfg *Config) { cfg.MaxAppendBytes, cfg.MaxInflightBytes = 1000, inflight }
		for _, id := range []uint64{1, 2, 3} {
			c.add(id, []uint64{1, 2, 3})
		}
		c.elect(1)
		c.run(2)
		n := c.nodes[3]
		n.hung = true
		waiting := func() (bytes int) {
			for _, a := range n.appends {
				bytes += a.Bytes()
			}
			return bytes
		}
		for i, lead := range []uint64{1, 2, 1, 2} {
			if i > 0 {
				c.nodes[3-lead].r.transferTo(lead)
				c.run(2)
			}
			require.True(t, c.nodes[lead].r.leads())
			for range 200 {
				c.propose(lead, fmt.Sprintf("%050d", i))
				c.settle()
			}
			c.run(3 * electionTicks)
			require.NotZero(t, waiting())
			require.LessOrEqual(t, waiting(), 2*inflight)
			require.LessOrEqual(t, len(n.r.writes.riders), 100)
		}
		n.hung = false
		c.run(3 * electionTicks)
		require.Len(t, c.agree(), 800)
	})
}

// Leaders send a follower that cannot write no more than its budget holds, which all groups of the node share, and the follower
// catches up when it can write.
func TestFollowerThatCannotWriteKeepsToItsBudget(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for name, stop := range map[string]func(*cluster, *node){
			"late": func(c *cluster, n *node) {
				n.hung = true
				c.propose(1, "under way")
				c.run(electionTicks + 2)
			},
			"full": func(c *cluster, n *node) { c.stall(3) },
		} {
			t.Run(name, func(t *testing.T) {
				c, budget := newCluster(t, core), NewBudget(5000)
				c.tune = func(cfg *Config) {
					if cfg.ID == 3 {
						cfg.Budget = budget
					}
				}
				for _, id := range []uint64{1, 2, 3} {
					c.add(id, []uint64{1, 2, 3})
				}
				c.elect(1)
				c.run(2)
				n := c.nodes[3]
				stop(c, n)
				require.Error(t, n.r.Status().Stalled)
				require.Zero(t, budget.Used())
				for i := range 500 {
					c.propose(1, fmt.Sprintf("%050d", i))
					c.settle()
				}
				c.run(electionTicks)
				waiting := 0
				for _, a := range n.appends {
					waiting += a.Bytes()
				}
				require.Greater(t, waiting, 2500)
				require.LessOrEqual(t, waiting, 5000+200)
				require.LessOrEqual(t, budget.Used(), int64(5000))
				require.NotZero(t, n.r.Status().Counters.AppendsLost)
				require.Equal(t, c.nodes[1].r.Leader(), n.r.Leader(), "it hears its leader")
				n.hung = false
				c.unstall(n)
				c.run(3 * electionTicks)
				require.GreaterOrEqual(t, len(c.agree()), 500)
				require.Zero(t, budget.Used())
			})
		}
	})
}
