// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// hostileGroup returns three voters in two zones and a learner, which code, give names, name relays, and place their leader. Node 1
// leads.
func hostileGroup(t testing.TB) *cluster {
	c := newCluster(t, Weft)
	c.coding = func() *raft.Coding { return &raft.Coding{Threshold: 2000, Policy: ecraft.Levelled{}} }
	yes := func(uint64) bool { return true }
	c.tune = func(cfg *Config) {
		cfg.Names = &Names{Announced: yes, Relayed: yes, Runs: yes, Zone: func(id uint64) string { return []string{"a", "b"}[id%2] }}
		n, err := placement.NewNode(placement.NodeConfig{ID: cfg.ID, Timeout: 10 * tick, Clock: func() (at time.Duration) { return c.now }})
		require.NoError(t, err)
		cfg.Placement = n
	}
	for id := uint64(1); id <= 3; id++ {
		c.add(id, []uint64{1, 2, 3})
	}
	c.elect(1)
	c.add(4, nil)
	require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
	c.run(3)
	return c
}

// FuzzReceive has members of each role take any messages, one behind the other: from another member, and mostly of the present term.
// They may be refused, and a member that lies may do harm; but nothing panics, also not later.
func FuzzReceive(f *testing.F) {
	c := hostileGroup(f)
	seen := map[wire.Kind]int{}
	c.lose = func(m wire.Message) bool {
		if k := m.Kind(); seen[k] < 20 {
			seen[k]++
			b, err := m.MarshalBinary()
			require.NoError(f, err)
			f.Add(uint8(m.To), uint8(m.From), true, b[1:])
		}
		return false
	}
	for i := range 20 {
		c.propose(uint64(1+i%4), large(i))
		c.propose(uint64(1+i%4), large(i)+large(i))
		c.run(1)
	}
	f.Fuzz(func(t *testing.T, to, from uint8, present bool, data []byte) {
		c := hostileGroup(t)
		n := c.nodes[1+uint64(to)%4]
		c.mayFail = true
		_, _ = wire.DecodeMessages(data, func(m wire.Message) {
			m.Group, m.To, m.From = n.cfg.Group, n.cfg.ID, 1+uint64(from)%5
			if b, ok := m.RaftBody(); ok {
				b.To, b.From = &m.To, &m.From
				if present && b.Term != nil && b.GetTerm() > 0 {
					b.Term = new(n.r.Status().Term)
				}
			}
			_ = n.r.Receive(m)
			n.step(c)
		})
		for range 15 {
			c.now += tick
			n.r.Tick(c.now)
			n.step(c)
		}
	})
}

// step lets a node do its work, as far as it can, and nobody gets its messages.
func (n *node) step(c *cluster) {
	out := n.r.Flush(c.now)
	for _, a := range out.Appends {
		if n.log.Append(a.Write, nil) == nil {
			n.r.AppendDone(a)
		}
	}
	for _, a := range out.Applies {
		if a.Batch.Index > n.sm.index {
			results, _ := n.sm.Apply(a.Batch)
			n.r.ApplyDone(a, results)
		}
	}
	for _, q := range out.Queries {
		n.r.Answered(q, wire.Reply{Code: wire.NoQueries})
	}
}
