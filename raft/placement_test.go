// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// weighedGroup is a group of n, led by node 1, whose members have weights.
func weighedGroup(t *testing.T, n int, weights map[uint64]int) *leaseGroup {
	return newLeaseGroup(t, n, n, nil, func(c *raft.Config) {
		if weights != nil {
			c.Placement = &raft.Placement{Weights: weights}
		}
	})
}

// elected stops the leader, and returns who is elected, and how long that takes.
func (g *leaseGroup) elected() (id uint64, took time.Duration) {
	g.leader().stop()
	took = g.until("another leads", time.Minute, func() bool { return g.leader() != nil })
	return g.leader().id, took
}

func TestLeaderHandsOverToTheLargestWeight(t *testing.T) {
	g := weighedGroup(t, 5, map[uint64]int{3: 300, 4: 200})
	g.pass(2 * lateTimeout)
	require.Equal(t, uint64(1), g.leader().id, "a hand-over has time")
	g.until("node 3 leads", 4*lateTimeout, func() bool { return g.leader() != nil && g.leader().id == 3 })
	g.pass(100 * lateTimeout)
	require.Equal(t, uint64(3), g.leader().id)
}

func TestLeaderStaysIfNoMemberIsToLeadRather(t *testing.T) {
	for name, weights := range map[string]map[uint64]int{
		"no weights": nil, "equal weights": {1: 50, 2: 50, 3: 50}, "smaller weights": {2: 99, 3: 0}, "no entry": {1: 100},
	} {
		g := weighedGroup(t, 3, weights)
		g.pass(50 * lateTimeout)
		require.Equal(t, uint64(1), g.leader().id, name)
	}
}

// A member that is away, or whose disk hangs, is preferred once it has what the leader has.
func TestLeaderHandsOverToMembersThatCouldLead(t *testing.T) {
	for name, fail := range map[string]func(*leaseNode){
		"stopped":    (*leaseNode).stop,
		"disk hangs": func(n *leaseNode) { n.stuck = true },
	} {
		g := weighedGroup(t, 3, map[uint64]int{3: 200})
		fail(g.nodes[3])
		for range 40 { // as many entries as would be under way, and more
			g.write("x")
			g.pass(lateTimeout / 2)
		}
		require.Equal(t, uint64(1), g.leader().id, name)
		if g.nodes[3].up {
			g.nodes[3].goOn()
		} else {
			g.nodes[3].restart()
		}
		g.until(name+": node 3 leads", 10*lateTimeout, func() bool { return g.leader() != nil && g.leader().id == 3 })
	}
}

// A group that writes all the time loses little by a hand-over: proposals are dropped for some round trips, and not for as
// long as a hand-over may take.
func TestLeaderHandsOverUnderWrites(t *testing.T) {
	g := weighedGroup(t, 3, map[uint64]int{3: 200})
	refused := time.Duration(0)
	for range 60 * 10 {
		if l := g.leader(); l == nil || l.rn.Propose([]byte("x")) != nil {
			refused += leaseTick / 10
		} else {
			l.work()
		}
		g.pass(leaseTick / 10)
	}
	require.Equal(t, uint64(3), g.leader().id)
	require.Less(t, refused, 4*leaseTick)
}

// Patience is drawn in the order of the ids, so that without weights node 2 would campaign first.
func TestSilentLeaderIsFollowedByTheLargestWeight(t *testing.T) {
	g := weighedGroup(t, 5, map[uint64]int{1: 1000, 3: 50, 5: 200, 2: 0})
	id, took := g.elected()
	require.Equal(t, uint64(5), id)
	require.Less(t, took, 2*lateTimeout+5*leaseTick)
	g = weighedGroup(t, 5, nil)
	id, _ = g.elected()
	require.Equal(t, uint64(2), id)
}

// Where the members with larger weights are away, a voter of weight 0 campaigns, late by about an election timeout,
// and then as often as any other.
func TestWeightsBlockNoElection(t *testing.T) {
	g := weighedGroup(t, 3, map[uint64]int{1: 1000, 2: 0, 3: 200})
	g.nodes[1].stop()
	g.nodes[3].stop()
	last := g.now
	var waits []time.Duration
	g.sent = func(m *pb.Message) {
		if m.GetType() == pb.MsgPreVote && m.GetTo() == 3 {
			waits, last = append(waits, g.now-last), g.now
		}
	}
	g.pass(8 * lateTimeout)
	require.GreaterOrEqual(t, len(waits), 3)
	require.Greater(t, waits[0], 2*lateTimeout)
	require.LessOrEqual(t, waits[0], 3*lateTimeout)
	for _, w := range waits[1:] {
		require.LessOrEqual(t, w, 2*lateTimeout)
	}
	g.nodes[1].restart() // a voter with the same log, after the quarantine of leases
	g.until("a leader", 5*lateTimeout, func() bool { return g.leader() != nil })
}

// A leader hands over to nobody that it does not hear.
func TestLeaderDoesNotHandOverToMemberThatIsAway(t *testing.T) {
	g := weighedGroup(t, 3, map[uint64]int{3: 200})
	g.nodes[3].stop()
	for range 20 * 10 {
		g.pass(leaseTick)
		require.Zero(t, g.leader().rn.BasicStatus().LeadTransferee)
	}
}

// A preferred member that goes and comes back again and again gets leadership ever more rarely.
func TestPreferredMemberThatComesAndGoesIsWaitedFor(t *testing.T) {
	g := weighedGroup(t, 3, map[uint64]int{3: 200})
	var took []time.Duration
	leads := func() bool { l := g.leader(); return l != nil && l.id == 3 }
	g.until("node 3 leads", time.Minute, leads)
	for range 3 {
		_, _ = g.elected()
		g.nodes[3].restart()
		took = append(took, g.until("node 3 leads again", time.Hour, leads))
	}
	require.True(t, slices.IsSorted(took), "%v", took)
	require.Greater(t, took[1], 40*lateTimeout, "each change of leader counts: %v", took)
}

func TestPlacementIsValidated(t *testing.T) {
	valid := func() *raft.Config {
		c := config(raft.NewMemoryStorage())
		c.CheckQuorum, c.Placement = true, &raft.Placement{Weights: map[uint64]int{1: 0, 2: 1000}}
		return c
	}
	require.NoError(t, valid().Validate())
	for says, change := range map[string]func(*raft.Config){
		"Placement needs CheckQuorum":                 func(c *raft.Config) { c.CheckQuorum = false },
		"1001 for node 7; it must be 0 to 1000":       func(c *raft.Config) { c.Placement.Weights[7] = 1001 },
		"-1 for node 7; it must be 0 to 1000":         func(c *raft.Config) { c.Placement.Weights[7] = -1 },
		"Weights has 0, which is the id of no member": func(c *raft.Config) { c.Placement.Weights[0] = 5 },
	} {
		c := valid()
		change(c)
		require.ErrorContains(t, c.Validate(), says)
	}
}

// The host's settings are the host's: nodes of one process may share them.
func TestPlacementIsCopied(t *testing.T) {
	weights := map[uint64]int{3: 200}
	g := weighedGroup(t, 3, weights)
	weights[3] = 0
	g.until("node 3 leads", time.Minute, func() bool { return g.leader() != nil && g.leader().id == 3 })
}
