// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// localGroup is three nodes, of which node 1 leads, node 2 is a responder, and node 3 is none.
func localGroup(t testing.TB) *cluster {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	c.run(2)
	return c
}

func keys(names ...string) (o ReadOptions) {
	for _, name := range names {
		o.Spans = append(o.Spans, leases.KeySpan(name))
	}
	return o
}

func (n *node) reads(o ReadOptions) bool {
	_, ok := n.local.Read(&o)
	return ok
}

func TestReadByLeaseNeedsNoTurn(t *testing.T) {
	c := localGroup(t)
	call := c.propose(3, "a=1")
	c.run(2)
	wrote := c.result(call).Index
	for _, policy := range []ReadPolicy{nil, ReadIndex{}, AtResponder{}} {
		for id, by := range map[uint64]ServedBy{1: ServedByLease, 2: ServedByRoster} {
			res, ok := c.nodes[id].local.Read(&ReadOptions{Policy: policy})
			require.True(t, ok, "%T at node %d", policy, id)
			require.GreaterOrEqual(t, res.Index, wrote)
			require.Equal(t, ReadResult{Index: res.Index, By: by}, res)
		}
		require.False(t, c.nodes[3].reads(ReadOptions{Policy: policy}), "nobody named node 3")
	}
	require.True(t, c.nodes[1].reads(ReadOptions{Policy: LeaderLease{}}))
	require.False(t, c.nodes[2].reads(ReadOptions{Policy: LeaderLease{}}), "only the leader may answer")
	for _, policy := range []ReadPolicy{QuorumRead{}, BoundedStaleness{Max: time.Hour}, Local{}} {
		require.False(t, c.nodes[1].reads(ReadOptions{Policy: policy}), "%T", policy)
	}
	for _, bad := range []ReadOptions{{Spans: []leases.Span{{Start: "b", End: "a"}}}, {Spans: make([]leases.Span, leases.MaxSpans+1)}} {
		require.False(t, c.nodes[2].reads(bad), "the replica says what is wrong with the spans")
	}
}

func TestLocalReadsAreCounted(t *testing.T) {
	c := localGroup(t)
	for id, reads := range map[uint64]int{1: 3, 2: 4} {
		n := c.nodes[id]
		before := n.r.Status()
		for range reads {
			require.True(t, n.reads(ReadOptions{}))
		}
		n.local.Settle(n.r)
		n.local.Settle(n.r) // counts nothing twice
		after, want := n.r.Status(), before.Counters
		want.Reads += uint64(reads)
		want.ReadsByPermit += uint64(reads)
		lease := after.Leases.Reads
		if id == 1 {
			want.ReadsByLease += uint64(reads)
			lease.Leader -= uint64(reads)
		} else {
			want.ReadsByRoster += uint64(reads)
			lease.Local -= uint64(reads)
		}
		require.Equal(t, want, after.Counters)
		require.Equal(t, before.Leases.Reads, lease)
	}
}

// Writes under way are those in the log of the node, whether the node knows of their commit or
// not.
func TestLocalReadLeavesAWriteUnderWayToTheReplica(t *testing.T) {
	c := localGroup(t)
	c.lose = func(m wire.Message) bool { return m.To == 1 && m.Class() == wire.ClassControl }
	call := c.propose(1, "a=1")
	c.settle()
	require.NotContains(t, c.done, call)
	n := c.nodes[2]
	require.False(t, n.reads(keys("a")))
	require.False(t, n.reads(keys("b", "a")))
	require.False(t, n.reads(ReadOptions{}))
	require.True(t, n.reads(keys("b")))
	require.True(t, c.nodes[1].reads(ReadOptions{}), "the leader has told nobody")
	c.lose = func(wire.Message) bool { return false }
	c.run(3)
	require.NoError(t, c.result(call).Err)
	require.True(t, n.reads(keys("a")))
}

func TestLocalReadWaitsForTheStateMachine(t *testing.T) {
	c := localGroup(t)
	n := c.nodes[2]
	index := n.r.applied.at.index
	n.local.Applied(index - 1)
	require.False(t, n.reads(ReadOptions{}))
	n.local.Applied(index)
	require.True(t, n.reads(ReadOptions{}))
}

// A node whose loop stands still answers while its lease holds, by its clock, and no longer.
func TestLocalReadsEndWithTheLease(t *testing.T) {
	c := localGroup(t)
	n, begun := c.nodes[2], c.now
	for n.reads(ReadOptions{}) {
		c.now += time.Millisecond
		require.Less(t, c.now-begun, time.Second, "the default lease")
	}
	require.Greater(t, c.now-begun, 500*time.Millisecond, "most of the lease counts")
}

// stepClock is a clock at which something happens.
type stepClock struct {
	raft.Clock
	step func()
}

func (s stepClock) Now() time.Duration {
	s.step()
	return s.Clock.Now()
}

// What comes between the permit and the clock shows in the reading: here a pause longer
// than the lease, and a turn at its end that would have withdrawn the permit.
func TestReadLoadsItsPermitBeforeItReadsTheClock(t *testing.T) {
	c := localGroup(t)
	n := c.nodes[2]
	was := n.local.Permit()
	loaded := func(do func()) (ReadResult, bool) {
		n.local.clock = stepClock{n.cfg.Clock, do}
		defer func() { n.local.clock = n.cfg.Clock }()
		return n.local.Read(&ReadOptions{})
	}
	_, ok := loaded(func() { c.now += time.Minute })
	require.False(t, ok, "the process stood still for longer than the lease")
	c.now -= time.Minute

	before, ok := n.local.Read(&ReadOptions{})
	require.True(t, ok)
	res, ok := loaded(func() {
		if n.local.Permit() == was {
			c.propose(1, "a=1")
			c.run(1)
		}
	})
	require.True(t, ok)
	require.Equal(t, before.Index, res.Index, "the read rests on the permit of its begin")
	after, ok := n.local.Read(&ReadOptions{})
	require.True(t, ok)
	require.Greater(t, after.Index, before.Index)
}

// Whatever ends a lease withdraws the permit by the end of the same turn.
func TestPermitGoesInTheTurnThatEndsTheLease(t *testing.T) {
	for what, end := range map[string]func(c *cluster){
		"removed from the roster": func(c *cluster) { require.NoError(c.t, c.nodes[1].r.SetResponders(nil)) },
		"leases switched off":     func(c *cluster) { require.NoError(c.t, c.nodes[1].r.RetireLeases(true)) },
		"another leader": func(c *cluster) {
			c.calls++
			c.nodes[1].r.TransferLeader(c.calls, 3, c.now+50*tick)
		},
		"out of service": func(c *cluster) {
			c.mayFail = true
			c.nodes[2].r.Fail(ErrFailed)
		},
	} {
		c := localGroup(t)
		end(c)
		for range 20 {
			c.now += tick
			for _, id := range c.ids() {
				c.nodes[id].r.Tick(c.now)
			}
			c.settle()
			for _, n := range []*node{c.nodes[1], c.nodes[2]} {
				stable := n.r.Err() == nil && n.r.Status().Leases.Stable
				require.Equal(t, stable, n.reads(ReadOptions{}), "%s: node %d", what, n.cfg.ID)
			}
			if !c.nodes[2].reads(ReadOptions{}) {
				break
			}
		}
		require.False(t, c.nodes[2].reads(ReadOptions{}), what)
	}
}

func TestClosedLocalReadsAnswerNothing(t *testing.T) {
	c := localGroup(t)
	n := c.nodes[2]
	require.True(t, n.reads(ReadOptions{}))
	n.local.Close()
	require.False(t, n.reads(ReadOptions{}))
	c.run(2)
	require.False(t, n.reads(ReadOptions{}), "whatever is published")
}

func TestTunerHearsOfLocalReads(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	for _, id := range c.ids() {
		n := c.nodes[id]
		n.cfg.Leases.Boot, n.cfg.Leases.Tuner = id+10, &leases.TunerConfig{Window: 10 * tick, Least: 20}
		c.start(n)
	}
	c.run(11)
	c.elect(1)
	c.names(1, 2)
	// The operator's wish goes; only the tuner can name node 2, for what is read there.
	require.NoError(t, c.nodes[1].r.SetResponders([]leases.Want{{Span: leases.KeySpan("z"), Nodes: []leases.NodeID{3}}}))
	n := c.nodes[2]
	for range 40 {
		for range 30 {
			if o := keys("k"); !n.reads(o) {
				c.readWith(2, o)
			}
		}
		n.local.Settle(n.r)
		c.run(1)
	}
	require.True(t, n.reads(keys("k")))
	by := n.r.Status().Counters
	require.Greater(t, by.ReadsByPermit, uint64(500), "the tuner would have forgotten node 2 otherwise")
	require.Greater(t, by.ReadsByPermit, 2*(by.Reads-by.ReadsByPermit))
}

func TestSpansForTheTunerAreBounded(t *testing.T) {
	l := &LocalReads{}
	for i := range 2 * maxTunedSpans {
		l.note([]leases.Span{leases.KeySpan(strings.Repeat("x", 1+i%(maxTunedSpans+1)))})
	}
	l.note(nil)
	list := l.tuned()
	require.Len(t, list, maxTunedSpans)
	require.Less(t, list[0].Span.Start, list[1].Span.Start)
	require.EqualValues(t, 2, list[0].Reads)
	require.Empty(t, l.tuned())
}

// Without leases nothing is computed: no replica is asked. With leases a read, and a turn
// that changes no lease, take no memory.
func TestLocalReadsTakeNoMemory(t *testing.T) {
	off := newCluster(t, Weft, 1).nodes[1]
	require.Nil(t, off.local)
	off.local.Publish(nil)
	off.local.Settle(nil)
	off.local.Applied(1)
	off.local.Close()
	require.False(t, off.reads(ReadOptions{}))

	c := localGroup(t)
	for _, id := range []uint64{1, 2} {
		n := c.nodes[id]
		for _, o := range []ReadOptions{{}, keys("a", "b")} {
			require.Zero(t, testing.AllocsPerRun(100, func() { n.local.Read(&o) }))
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { n.local.Publish(n.r) }))
	}
}
