// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/raft"
)

var (
	lanNode = Node{Egress: 125e6, Sync: 100 * time.Microsecond}
	lanLink = Link{Delay: 50 * time.Microsecond, Jitter: 20 * time.Microsecond, StallChance: 0.001, Stall: 10 * time.Millisecond}
)

// settled runs a cluster until all calls are done and all that live agree.
func settled(t *testing.T, c *Cluster, l *Load) {
	t.Helper()
	l.Stop()
	done, err := c.RunUntil(c.Now()+time.Minute, func() bool {
		if l.Open() > 0 || c.Leader() == 0 {
			return false
		}
		return !slices.ContainsFunc(c.nodes, func(n *node) bool { return !n.dead && !n.paused && n.applied != c.Committed(c.Leader()) })
	})
	require.NoError(t, err)
	require.True(t, done, "%d calls are open, node %d leads", l.Open(), c.Leader())
}

// coded turns coded replication on.
func coded(o *Options) {
	o.Configure = func(_ uint64, c *raft.Config) { c.Coding = &raft.Coding{} }
}

// plain leaves it off.
func plain(*Options) {}

// either runs a test with full copies and with coded entries.
func either(t *testing.T, test func(t *testing.T, how func(*Options))) {
	t.Run("plain", func(t *testing.T) { test(t, plain) })
	t.Run("coded", func(t *testing.T) { test(t, coded) })
}

// The leader is killed again and again; what is lost in memory is proposed again.
func TestLeadersDie(t *testing.T) { either(t, leadersDie) }

func leadersDie(t *testing.T, how func(*Options)) {
	c := cluster(t, 3, lanNode, lanLink, how)
	require.NoError(t, c.Elect(1))
	l := load(t, c, LoadOptions{Rate: 2000, Sizes: []int{64, 4096}})
	for range 10 {
		old := c.Leader()
		c.Kill(old)
		before := len(l.Calls())
		done, err := c.RunUntil(c.Now()+time.Minute, func() bool { return len(l.Calls()) > before+100 })
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, c.Restart(old))
		require.NoError(t, c.Run(c.Now()+3*time.Second))
		require.NotZero(t, c.Leader())
	}
	settled(t, c, l)
}

// A follower that sleeps misses what the others have compacted, and gets a
// snapshot.
func TestPauseAndSnapshot(t *testing.T) { either(t, pauseAndSnapshot) }

func pauseAndSnapshot(t *testing.T, how func(*Options)) {
	c := cluster(t, 3, lanNode, lanLink, how, func(o *Options) { o.Keep = 100 })
	require.NoError(t, c.Elect(1))
	l := load(t, c, LoadOptions{Clients: 16, Sizes: []int{64, 2048}, Most: 10000})
	c.Kill(3)
	c.Pause(2)
	require.NoError(t, c.Run(c.Now()+100*time.Millisecond))
	require.Empty(t, l.Calls())
	c.Resume(2)
	require.NoError(t, c.Run(c.Now()+5*time.Second))
	require.Len(t, l.Calls(), 10000)
	require.Zero(t, c.Counts().Snapshots)
	require.NoError(t, c.Restart(3))
	settled(t, c, l)
	require.NotZero(t, c.Counts().Snapshots)
}

// A run is a function of its options.
func TestSameRun(t *testing.T) { either(t, sameRun) }

func sameRun(t *testing.T, how func(*Options)) {
	run := func(seed uint64) (Counts, Traffic, []Call) {
		c := cluster(t, 5, lanNode, lanLink, how, func(o *Options) { o.Seed = seed })
		require.NoError(t, c.Elect(1))
		l := load(t, c, LoadOptions{Rate: 5000, Sizes: []int{64, 4096, 65536}, Most: 1000})
		c.After(100*time.Millisecond, func() { c.Kill(1) })
		require.NoError(t, c.Run(10*time.Second))
		require.Zero(t, l.Open())
		return c.Counts(), c.SentByAll(), l.Calls()
	}
	counts, sent, calls := run(1)
	counts2, sent2, calls2 := run(1)
	require.Equal(t, counts, counts2)
	require.Equal(t, sent, sent2)
	require.Equal(t, calls, calls2)
	counts3, _, _ := run(2)
	require.NotEqual(t, counts, counts3)
}

// A leader that hears ReportUnreachable stops sending to a dead follower; a leader
// that does not hear it fills the window of appends.
func TestNotice(t *testing.T) {
	sent := func(notice time.Duration) uint64 {
		c := cluster(t, 3, lanNode, lanLink, func(o *Options) { o.Notice = notice })
		require.NoError(t, c.Elect(1))
		require.NoError(t, c.Run(c.Now()+100*time.Millisecond))
		c.Kill(3)
		l := load(t, c, LoadOptions{Clients: 4, Sizes: []int{64}, Most: 2000})
		done, err := c.RunUntil(c.Now()+10*time.Second, func() bool { return len(l.Calls()) == 2000 })
		require.NoError(t, err)
		require.True(t, done)
		return c.Sent(1, 3).Messages
	}
	require.Less(t, sent(time.Millisecond), uint64(200))
	require.Greater(t, sent(0), uint64(2000))
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{Nodes: []Node{{Egress: -1}}, Tick: -1})
	require.ErrorContains(t, err, "Nodes[0]: vnet: Node.Egress is -1; it must not be negative")
	require.ErrorContains(t, err, "Tick is -1ns")
	_, err = New(Options{})
	require.ErrorContains(t, err, "Nodes has 0 nodes; 1 to 64")
	_, err = New(Options{Nodes: make([]Node, 2), Link: func(_, _ uint64) Link { return Link{StallChance: 2} }})
	require.ErrorContains(t, err, "1 to 2: vnet: Link.StallChance is 2; it must lie in [0, 1]")
	c := cluster(t, 2, Node{}, Link{})
	require.ErrorContains(t, c.SetLink(1, 1, Link{}), "no link leads from 1 to 1")
	require.ErrorContains(t, c.SetNode(3, Node{}), "there is no node 3")
	require.ErrorContains(t, c.Restart(1), "node 1 is not dead")
	c.Kill(1)
	require.ErrorIs(t, c.Propose(1, nil), errDown)
	require.ErrorIs(t, c.Campaign(9), errDown)
	_, err = c.StartLoad(LoadOptions{Clients: 1, Rate: 1, Sizes: []int{7}})
	require.ErrorContains(t, err, "exactly one must be above 0")
	require.ErrorContains(t, err, "Sizes has 7; at least 8")
}

// A processor takes one message after the other, and clients' calls in between.
func TestProcessorTakesOneThingAtATime(t *testing.T) {
	c := cluster(t, 3, Node{Work: time.Millisecond}, Link{}, func(o *Options) { o.Learners = 1; o.Tick = 10 * time.Second })
	require.NoError(t, c.Elect(1))
	require.NoError(t, c.Run(c.Now()+time.Second))
	require.Len(t, c.Core(1).Status().Config.Learners, 1)
	var at []time.Duration
	busy, began := c.Busy(2), c.Now()
	for range 3 {
		require.NoError(t, c.Do(2, 2*time.Millisecond, func(*raft.RawNode) { at = append(at, c.Now()-began) }))
	}
	c.Tell(1, 2, 100, func() { at = append(at, c.Now()-began) })
	require.NoError(t, c.Run(began+time.Second))
	ms := time.Millisecond
	require.Equal(t, []time.Duration{2 * ms, 4 * ms, 6 * ms, 7 * ms}, at)
	require.Equal(t, 7*ms, c.Busy(2)-busy)
	c.Kill(2)
	require.ErrorIs(t, c.Do(2, 0, nil), errDown)
}
