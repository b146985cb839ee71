// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// hideCommits has a node be sent entries, and not be told that they are committed.
func (c *cluster) hideCommits(n *node) {
	id, before := n.r.cfg.ID, n.r.state.Commit
	c.lose = func(m wire.Message) bool {
		raft, ok := m.Body.(wire.Raft)
		if ok && m.To == id && len(raft.GetEntries()) > 0 {
			raft.Commit = &before
			return false
		}
		return m.To == id
	}
}

// restoreAsCommitsCome has a node restore a snapshot of node 1 while the core hears of commits up to last.
func (c *cluster) restoreAsCommitsCome(n *node, snap *journalSnapshot, last uint64) {
	from, to, term := uint64(1), n.r.cfg.ID, n.r.state.Term
	header, err := SnapshotHeader(SnapshotSend{To: to, Message: &pb.Message{
		Type: pb.MsgSnap.Enum(), From: &from, To: &to, Term: &term,
	}}, snap.Meta())
	require.NoError(c.t, err)
	require.NoError(c.t, n.r.OfferSnapshot(from, header))
	beat := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: &from, To: &to, Term: &term, Commit: &last}
	require.NoError(c.t, n.r.Receive(wire.Message{Group: 7, From: from, To: to, Body: wire.Raft{Message: beat}}))
	c.arrive(n, header, snap)
}

// While a node restores a snapshot, its core hears that entries before and behind the
// snapshot's index are committed, and nobody looks at the core until the snapshot is
// restored. What the snapshot has is not applied again.
func TestCommittedWhileASnapshotIsRestored(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(3)
		behind, before := c.nodes[3], c.nodes[3].r.state.Commit
		c.hideCommits(behind)
		for i := range 4 {
			c.propose(1, fmt.Sprint("x", i))
			c.settle()
		}
		snap, err := c.nodes[2].sm.Snapshot()
		require.NoError(t, err)
		for i := range 4 {
			c.propose(1, fmt.Sprint("y", i))
			c.settle()
		}
		require.Equal(t, before, behind.r.state.Commit)
		last := c.nodes[1].r.state.Commit
		require.Equal(t, last, behind.r.last)

		c.restoreAsCommitsCome(behind, snap, last)
		c.lose = func(wire.Message) bool { return false }
		c.run(3)
		require.Equal(t, []string{"x0", "x1", "x2", "x3", "y0", "y1", "y2", "y3"}, c.agree())
	})
}

// A home restores a snapshot while its core hands out entries before and behind the snapshot's index. A report that names this
// index before the results of the entries before it would say that a gateway's command, which is applied, never will be.
func TestReportsNameNoSnapshotBeforeTheEntriesUnderIt(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.g.SetHomes([]uint64{3}, nil)
	c.run(30)
	home, before := c.nodes[3], c.nodes[3].r.state.Commit
	c.hideCommits(home)
	call := c.propose("a")
	c.settle()
	b := c.g.outbox.batches[0]
	require.NoError(t, c.g.Receive(wire.Message{Group: 7, From: 1, To: 9, Body: wire.Verdict{
		ID: c.g.outbox.id(b), Number: b.number, Outcome: wire.Accepted, Term: b.term, Index: c.nodes[1].r.last,
	}}))
	snap, err := c.nodes[2].sm.Snapshot()
	require.NoError(t, err)
	c.cluster.propose(1, "b")
	c.settle()
	last := c.nodes[1].r.state.Commit
	require.Equal(t, before, home.r.state.Commit)

	c.restoreAsCommitsCome(home, snap, last)
	c.lose = func(wire.Message) bool { return false }
	c.g.attach(false) // in the turn in which the snapshot is restored
	c.settle()
	c.run(30)
	require.Contains(t, c.agree(), "a")
	require.ErrorIs(t, c.result(call).Err, ErrUnknown)
	require.ErrorIs(t, c.result(call).Err, ErrSuperseded)
}
