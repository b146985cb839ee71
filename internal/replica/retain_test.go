// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// A snapshot takes so long that five times as much is written meanwhile as is kept
// for followers that lag. The follower needs one all the same, not one after another
// for ever.
func TestSlowSnapshotIsEnough(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c, leader := snapshotting(t, core)
		for range 100 {
			write(c, 10)
		}
		require.EqualValues(t, 1, leader.r.Status().Counters.SnapshotsSent)
		c.run(30)
		c.agree()
		first, err := leader.log.FirstIndex()
		require.NoError(t, err)
		write(c, 1)
		write(c, 1)
		require.Greater(t, first, leader.sm.index-100, "when it has caught up, as little is kept as before")
	})
}

// What is kept for a follower that gets a snapshot is bounded, and let go if the
// follower is gone.
func TestSlowSnapshotHoldsSoMuch(t *testing.T) {
	kept := func(c *cluster, n *node) uint64 {
		first, err := n.log.FirstIndex()
		require.NoError(c.t, err)
		return n.sm.index - first
	}
	t.Run("bound", func(t *testing.T) {
		c, leader := snapshotting(t, Weft)
		c.streams[0].due += 1000 * tick
		most := uint64(0)
		for range 100 {
			write(c, 10)
			most = max(most, kept(c, leader))
		}
		require.InDelta(t, holdFactor*20, most, 20)
		require.Less(t, kept(c, leader), uint64(40))
	})
	t.Run("gone", func(t *testing.T) {
		c, leader := snapshotting(t, Weft)
		for range 10 {
			write(c, 10)
		}
		require.Greater(t, kept(c, leader), uint64(80))
		c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
		for range 12 {
			write(c, 1)
		}
		require.Less(t, kept(c, leader), uint64(40))
	})
	t.Run("full", func(t *testing.T) {
		c, leader := snapshotting(t, Weft)
		for range 9 {
			write(c, 10)
		}
		require.Greater(t, kept(c, leader), uint64(80))
		_ = leader.r.Stalled(errDiskFull)
		c.settle()
		require.Less(t, kept(c, leader), uint64(40))
	})
	t.Run("failed", func(t *testing.T) {
		c, leader := snapshotting(t, Weft)
		c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
		for range 5 {
			write(c, 10)
		}
		c.streams = nil
		leader.r.SnapshotSent(3, fmt.Errorf("broken"))
		write(c, 10)
		require.Less(t, kept(c, leader), uint64(40))
	})
}

// snapshotting returns a cluster in which node 1, which leads and keeps 20 entries,
// has begun to send node 3 a snapshot that takes 10 ticks.
func snapshotting(t *testing.T, core NewCore) (*cluster, *node) {
	c := newCluster(t, core)
	for _, id := range []uint64{1, 2, 3} {
		n := c.add(id, []uint64{1, 2, 3})
		n.cfg.RetainEntries = 20
		c.start(n)
	}
	leader := c.elect(1)
	c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
	for range 10 {
		write(c, 10)
	}
	c.slow = 10
	c.lose = func(wire.Message) bool { return false }
	for range 50 {
		if len(c.streams) > 0 {
			return c, leader
		}
		c.run(1)
	}
	t.Fatal("no snapshot is sent")
	return nil, nil
}

// write lets a tick pass in which so many entries are written.
func write(c *cluster, n int) {
	for range n {
		c.propose(1, "x")
		c.settle()
	}
	c.run(1)
}

// Each hold is there for its own follower's sake: one that keeps more of the log lets no other go,
// in whatever order a map has them.
func TestHoldsDoNotDependOnEachOther(t *testing.T) {
	c, leader := snapshotting(t, Weft)
	c.run(30)
	c.agree()
	r, last := leader.r, leader.r.last
	var others []uint64
	for id := range c.nodes {
		if id != r.cfg.ID {
			others = append(others, id)
		}
	}
	for range 20 {
		r.keep.holds = map[uint64]hold{}
		for i, id := range others {
			r.keep.holds[id] = hold{index: last + 1 + uint64(2*i), total: r.keep.total, sent: true}
		}
		require.Equal(t, last+1, r.keep.held(last+10))
		require.Len(t, r.keep.holds, len(others))
	}
}
