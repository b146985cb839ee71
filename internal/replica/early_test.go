// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// early proposes commands, one an entry, at a leader whose disk hangs, and returns the calls.
func (c *cluster) early(commands ...string) (calls []Call) {
	c.nodes[1].hung = true
	for _, cmd := range commands {
		calls = append(calls, c.propose(1, cmd))
		c.settle()
	}
	return calls
}

// The disk of a leader hangs. Its calls are answered; Upstream's core waits for the disk.
func TestCallsAreAnsweredBeforeTheLeadersDisk(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := lateCluster(t, core, 3)
		calls := c.early("a", "b")
		_, answered := c.done[calls[1]]
		early := c.nodes[1].r.Status().Counters.EarlyEntries
		c.nodes[1].hung = false
		c.settle()
		require.NoError(t, c.result(calls[1]).Err)
		c.run(2)
		require.Equal(t, []string{"a", "b"}, c.agree())
		_, upstream := c.nodes[1].r.core.(*upstreamCore)
		require.Equal(t, !upstream, answered)
		if upstream {
			require.Zero(t, early)
		} else {
			require.Equal(t, uint64(2), early)
		}
	})
}

// A state machine that is durable with each step is ahead of the log. What counts as durable, what may be
// compacted, and what is released to members that code, is what the log has, too (rule E4).
func TestWhatCountsAsDurableIsInTheLog(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	for _, n := range c.nodes {
		n.cfg.RetainEntries = 1
		c.start(n)
	}
	c.elect(1)
	c.run(2)
	n := c.nodes[1]
	view := logView{durable: func() uint64 { return n.r.keep.durable }}
	stored, err := n.log.LastIndex()
	require.NoError(t, err)
	c.early("a", "b", "c")
	require.Equal(t, stored+3, n.sm.index)
	require.Equal(t, n.sm.index, n.r.keep.reported)
	require.LessOrEqual(t, view.Released(), stored)
	n.hung = false
	c.settle()
	require.Equal(t, n.sm.index, view.Released(), "without another word of the state machine")
	first, err := n.log.FirstIndex()
	require.NoError(t, err)
	require.Equal(t, n.sm.index, first, "all but one entry is dropped")
}

// A write that replaces entries which are stored makes their places unknown until it is stored itself.
func TestStoredEndsBeforeTheFirstWriteThatWaits(t *testing.T) {
	c := lateCluster(t, Weft, 3)
	old := c.nodes[1]
	c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
	c.propose(1, "lost")
	c.propose(1, "lost, too")
	c.settle()
	last, err := old.log.LastIndex()
	require.NoError(t, err)
	require.Greater(t, old.r.writes.stored(), last)
	c.run(3 * electionTicks)
	require.NotZero(t, c.nodes[2].r.Leader())
	c.propose(2, "kept")
	c.settle()
	old.hung = true
	c.lose = func(wire.Message) bool { return false }
	c.run(3)
	end := old.r.emitted.index
	require.Equal(t, "kept", old.sm.applied[len(old.sm.applied)-1])
	require.Less(t, old.r.writes.stored(), end, "the log has other entries there")
	require.LessOrEqual(t, old.r.keep.durable, old.r.writes.stored())
	old.hung = false
	c.settle()
	require.GreaterOrEqual(t, old.r.keep.durable, end)
}

// A leader stops that has applied what its log has not stored. The log begins anew at the state (rule E3),
// and the node goes on, can lead, and serves others.
func TestLogBeginsAnewAtAStateThatIsAhead(t *testing.T) {
	c := lateCluster(t, Weft, 3)
	n := c.nodes[1]
	c.early("a", "b", "c")
	stored, err := n.log.LastIndex()
	require.NoError(t, err)
	require.Greater(t, n.sm.index, stored)
	n.hung = false
	c.start(n)
	first, err := n.log.FirstIndex()
	require.NoError(t, err)
	require.Equal(t, n.sm.index+1, first)
	c.settle()
	c.run(30)
	lead := c.nodes[c.nodes[2].r.Leader()].r
	lead.core.TransferLeader(1)
	lead.dirty = true
	c.settle()
	require.True(t, n.r.leads())
	after := c.propose(3, "after")
	c.settle()
	c.run(2)
	require.NoError(t, c.result(after).Err)
	require.Equal(t, []string{"a", "b", "c", "after"}, c.agree())
}

// The way back after a majority is lost takes a state that is ahead of its log for the end, also where
// the log has entries that were never committed. A state within its log takes the entries behind.
func TestTailOfALogThatIsBehindItsState(t *testing.T) {
	c := lateCluster(t, Weft, 3)
	n := c.nodes[1]
	whole := *n.sm
	c.early("a", "b")
	last, err := n.log.LastIndex()
	require.NoError(t, err)
	require.Equal(t, last+2, n.sm.index)

	tail, err := NewLogTail(n.log, n.sm.index, n.sm.host, 0)
	require.NoError(t, err)
	index, term, ahead := tail.Ahead()
	require.True(t, ahead)
	require.Equal(t, n.sm.index, index)
	end, highest := tail.Last()
	require.Equal(t, index, end)
	require.GreaterOrEqual(t, highest, term)
	cfg := n.cfg
	cfg.Log, cfg.Applied, cfg.HostState = tail, n.sm.index, n.sm.host
	w, err := PrepareLog(cfg)
	require.NoError(t, err)
	require.Nil(t, w)
	r, err := New(cfg)
	require.NoError(t, err)
	out := r.Flush(c.now)
	require.Empty(t, out.Applies)
	require.NoError(t, r.Err())

	_, err = NewLogTail(n.log, n.sm.index, nil, 0)
	require.ErrorIs(t, err, ErrState)
	tail, err = NewLogTail(n.log, whole.index, whole.host, 0)
	require.NoError(t, err)
	_, _, ahead = tail.Ahead()
	require.False(t, ahead)

	h, err := decodeHostState(whole.host)
	require.NoError(t, err)
	h.at.term++
	tail, err = NewLogTail(n.log, whole.index, h.encode(), 0)
	require.NoError(t, err)
	_, _, ahead = tail.Ahead()
	require.True(t, ahead, "the log has another entry there")
}

// A leader stops whose state was not durable: it applies the same again, from the others.
func TestStateThatIsLostWithItsLogIsAppliedAgain(t *testing.T) {
	c := lateCluster(t, Weft, 3)
	n := c.nodes[1]
	before := *n.sm
	c.early("a", "b")
	*n.sm = before
	n.hung = false
	c.start(n)
	c.settle()
	c.run(30)
	require.Equal(t, []string{"a", "b"}, c.agree())
}

// A snapshot may hold what the sender's log has not stored (rule E5).
func TestSnapshotOfEarlyEntries(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3, 4, 5)
	for _, n := range c.nodes {
		n.cfg.RetainEntries = 1
		c.start(n)
	}
	c.elect(1)
	c.run(2)
	c.lose = func(m wire.Message) bool { return m.To == 5 }
	for i := range 5 {
		c.propose(1, fmt.Sprint(i))
		c.settle()
	}
	c.run(1)
	c.early("a", "b")
	c.lose = func(wire.Message) bool { return false }
	c.run(4)
	require.True(t, c.nodes[1].r.leads())
	require.NotZero(t, c.nodes[5].r.Status().Counters.SnapshotsInstalled)
	require.Equal(t, "b", c.nodes[5].sm.applied[6])
	c.start(c.nodes[1]) // without what it had not stored
	c.nodes[1].hung = false
	c.run(30)
	require.Len(t, c.agree(), 7)
}

// The setting is checked, and goes to the core.
func TestMaxEarlyApplyBytes(t *testing.T) {
	for value, want := range map[int]uint64{0: DefaultEarlyBytes, -1: 0, 7: 7} {
		var got raft.Config
		cfg := Config{Settings: Settings{ID: 1, Group: 1, Log: newMemLog(), Peers: []uint64{1}, MaxEarlyApplyBytes: value,
			Core: func(rc raft.Config) (Core, error) { got = rc; return Weft(rc) }}}
		w, err := PrepareLog(cfg)
		require.NoError(t, err)
		require.NoError(t, cfg.Log.Append(*w, nil))
		_, err = New(cfg)
		require.NoError(t, err)
		require.Equal(t, want, got.MaxEarlyApplySize)
	}
	err := Settings{ID: 1, Group: 1, Log: newMemLog(), MaxEarlyApplyBytes: -2}.Validate()
	require.ErrorContains(t, err, "MaxEarlyApplyBytes is -2, want -1 to")
	require.Equal(t, 1, strings.Count(err.Error(), "\n")+1)
}
