// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// kill ends a node; the others notice if its connections break.
func (c *cluster) kill(id uint64, breaks bool) {
	delete(c.nodes, id)
	for _, n := range c.nodes {
		if breaks {
			n.r.Unreachable(id)
		}
	}
}

// leaderAfter returns for how many ticks nobody led.
func (c *cluster) leaderAfter() int {
	c.t.Helper()
	for ticks := range 100 {
		for _, n := range c.nodes {
			if n.r.leads() {
				return ticks
			}
		}
		c.run(1)
	}
	for id, n := range c.nodes {
		c.t.Logf("node %d: %+v, heard of %v at tick %d, writes %+v", id, n.r.state, n.r.heard, n.r.ticks, n.r.writes)
	}
	require.Fail(c.t, "no leader")
	return 0
}

// Followers of a leader whose process died wait for one election timeout, and
// not for a random one above it, unless a random one ends at the very same tick.
func TestSuccession(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		gaps := func(breaks bool) []int {
			var gaps []int
			for trial := range 31 {
				c := newCluster(t, core, 1, 2, 3)
				for range trial {
					c.rand.Uint64() // other timeouts in each
				}
				c.elect(1)
				c.run(15)
				c.kill(1, breaks)
				gaps = append(gaps, c.leaderAfter())
			}
			slices.Sort(gaps)
			return gaps
		}
		broken, silent := gaps(true), gaps(false)
		t.Logf("ticks without a leader, of an election timeout of 10: %v; if no connection breaks: %v", broken, silent)
		require.LessOrEqual(t, broken[len(broken)/2], 11)
	})
}

// One whose log is too short leaves it to the next in line.
func TestSuccessionOfTheFurthest(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(15)
		c.lose = func(m wire.Message) bool { return m.To == 2 && m.Class() == wire.ClassAppend }
		call := c.propose(1, "x")
		c.run(2)
		require.NoError(t, c.result(call).Err)
		c.kill(1, true)
		c.leaderAfter()
		require.True(t, c.nodes[3].r.leads())
	})
}

// A connection that breaks says nothing while the leader is heard of, and no more
// when it was heard of since.
func TestNoSuccessionWithoutSilence(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		term := c.nodes[1].r.state.Term
		for range 50 {
			c.nodes[2].r.Unreachable(1)
			c.nodes[3].r.Unreachable(1)
			c.run(1)
		}
		require.Equal(t, term, c.nodes[1].r.state.Term)
		require.True(t, c.nodes[1].r.leads())
		c.run(1)
		require.Zero(t, c.nodes[2].r.heir.leader)
	})
}
