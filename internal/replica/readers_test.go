// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

const holdTime = 5 * time.Millisecond

// readers starts three voters, of which node 1 leads, and the readers 4 and 5, without zones, that are sent relays' names.
func readers(t *testing.T, core NewCore) *cluster {
	all := func(uint64) bool { return true }
	c := newCluster(t, core)
	c.tune = func(cfg *Config) {
		cfg.Hold, cfg.Names = holdTime, &Names{Zone: func(uint64) string { return "" }, Relayed: all, Runs: all}
	}
	for id := uint64(1); id <= 3; id++ {
		c.add(id, []uint64{1, 2, 3})
	}
	c.elect(1)
	for id := uint64(4); id <= 5; id++ {
		c.add(id, nil)
		require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, id)).Err)
	}
	c.run(5)
	return c
}

// later lets what is held leave.
func (c *cluster) later() {
	c.now += holdTime
	for _, id := range c.ids() {
		c.nodes[id].r.Poll(c.now)
	}
	c.settle()
}

// behind returns what node 4 lacks.
func (c *cluster) behind() int { return len(c.nodes[1].sm.applied) - len(c.nodes[4].sm.applied) }

func TestReadersWithoutZonesGetTheDataFromAVoter(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := readers(t, core)
		data := map[uint64]int{} // that the leader sends
		c.lose = func(m wire.Message) bool {
			if b, ok := m.RaftBody(); ok && m.From == 1 {
				for _, e := range b.Entries {
					data[m.To] += len(e.GetData())
				}
			}
			return false
		}
		for i := range 40 {
			c.propose(1, large(i))
			for k := range 20 {
				c.propose(1, fmt.Sprint(i, k, "small"))
				c.settle()
			}
			c.run(1)
		}
		c.run(3)
		c.later()
		require.Len(t, c.agree(), 40*21)
		require.Greater(t, data[2], 40*1000)
		require.Equal(t, data[2], data[3])
		require.Less(t, data[4], data[2]/20)
		require.Less(t, data[5], data[2]/20)
		counts := c.nodes[1].r.NameCounts()
		require.Greater(t, counts.Runs, uint64(60))
		require.LessOrEqual(t, counts.Filled, uint64(2), "the relay keeps what it is sent from the first learner on")
	})
}

// A reader gets many entries in one append, and acknowledges once. Nothing waits for longer than the bound.
func TestReadersAreSentJoinedAppends(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := readers(t, core)
		appends, acks := map[uint64]int{}, map[uint64]int{}
		c.lose = func(m wire.Message) bool {
			switch b, ok := m.RaftBody(); {
			case !ok:
			case b.GetType() == pb.MsgApp:
				appends[m.To]++
			case b.GetType() == pb.MsgAppResp:
				acks[m.From]++
			}
			return false
		}
		for i := range 10 {
			call := c.propose(1, fmt.Sprint(i))
			c.settle()
			require.NoError(t, c.result(call).Err, "no write waits for a reader")
		}
		require.Equal(t, 10, c.behind())
		at, due := c.nodes[1].r.Deadline()
		require.True(t, due)
		require.Equal(t, c.now+holdTime, at)
		c.later()
		require.Zero(t, c.behind())
		require.Equal(t, []int{1, 1}, []int{appends[4], acks[4]})
		require.GreaterOrEqual(t, appends[2], 10)
		require.Equal(t, uint64(38), c.nodes[1].r.Status().Counters.JoinedAppends, "10 entries and 10 commits, to each")
		_, due = c.nodes[1].r.Deadline()
		require.False(t, due)

		c.propose(1, "with the heartbeat")
		c.settle()
		require.Equal(t, 1, c.behind())
		c.run(1)
		require.Zero(t, c.behind())
	})
}

// A read at a reader waits for nothing that is held.
func TestReadLetsGoOfWhatIsHeld(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for _, policy := range []ReadPolicy{ReadIndex{}, QuorumRead{}} {
			c := readers(t, core)
			c.propose(1, "before")
			c.settle()
			require.Equal(t, 1, c.behind(), "%T", policy)
			call := c.read(4, policy)
			c.settle()
			require.NoError(t, c.result(call).Err)
			require.Zero(t, c.behind())

			c.propose(1, "of late")
			c.settle()
			require.Zero(t, c.behind(), "the reader has read of late")
			require.Less(t, len(c.nodes[5].sm.applied), len(c.nodes[1].sm.applied), "the other one has not")
			c.run(1)
			c.propose(1, "a tick later")
			c.settle()
			require.Zero(t, c.behind())
			c.run(afterRead + 2)
			c.propose(1, "long after")
			c.settle()
			require.Equal(t, 1, c.behind())
		}
	})
}

// Clients and gateways at a reader wait for what the reader applies.
func TestWritesOfClientsAtAReaderWaitForNothingThatIsHeld(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := readers(t, core)
		call := c.propose(4, "of a client")
		c.settle()
		require.NoError(t, c.result(call).Err)

		c.nodes[5].r.atHome().receive(9, wire.Attach{Life: 1, Number: 1})
		c.run(afterRead + 2)
		c.propose(1, "of a gateway, perhaps")
		c.settle()
		require.Equal(t, 1, c.behind(), "node 4 is idle again")
		require.Len(t, c.nodes[5].sm.applied, 2, "node 5 is a gateway's home")
	})
}

// A member that gets a vote is sent all at once, from the append of the change on; and one that lacks entries is, too.
func TestMembersThatCatchUpOrGetAVoteDoNotWait(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := readers(t, core)
		c.propose(1, "held")
		c.settle()
		require.Equal(t, 1, c.behind())
		require.NoError(t, c.change(1, single(pb.ConfChangeAddNode, 4)).Err)
		for range 3 {
			c.propose(1, "to a voter")
			c.settle()
			require.Zero(t, c.behind())
		}
		lost := true
		c.lose = func(m wire.Message) bool { return lost && m.To == 5 }
		for i := range 10 {
			c.propose(1, large(i))
			c.run(1)
		}
		lost = false
		sent := 0
		c.lose = func(m wire.Message) bool {
			b, ok := m.RaftBody()
			if ok && m.To == 5 && b.GetType() == pb.MsgApp {
				sent++
			}
			return false
		}
		c.nodes[1].r.Unreachable(5)
		c.propose(1, "more")
		c.settle()
		c.run(1)
		require.Len(t, c.agree(), 15)
		require.Positive(t, sent)
	})
}

// Writes wait for members that answer reads by leases.
func TestRespondersAreSentAllAtOnce(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.nodes[1].r.holding.longest = holdTime
	n := &node{log: newMemLog(), sm: &journal{}, cfg: c.nodes[1].cfg}
	n.cfg.ID, n.cfg.Peers, n.cfg.Log = 4, nil, n.log
	leases := *n.cfg.Leases
	leases.Boot = 4
	n.cfg.Leases, n.cfg.Clock = &leases, skewedClock{c, 4, 1}
	c.nodes[4] = n
	c.start(n)
	c.elect(1)
	require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
	c.propose(1, "k=held")
	c.settle()
	require.Equal(t, 1, c.behind())
	c.names(1, 4)
	call := c.propose(1, "k=awaited")
	c.settle()
	require.NoError(t, c.result(call).Err)
	require.Zero(t, c.behind())
}
