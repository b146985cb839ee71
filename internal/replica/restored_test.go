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

// While a node restores a snapshot, its core hears that entries before and behind the
// snapshot's index are committed, and nobody looks at the core until the snapshot is
// restored. What the snapshot has is not applied again.
func TestCommittedWhileASnapshotIsRestored(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(3)
		behind, before := c.nodes[3], c.nodes[3].r.state.Commit
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			if ok && m.To == 3 && len(raft.GetEntries()) > 0 {
				raft.Commit = &before
				return false
			}
			return m.To == 3 // it has the entries, and does not know that they are committed
		}
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
		term, last := behind.r.state.Term, c.nodes[1].r.state.Commit
		require.Equal(t, last, behind.r.last)

		header, err := SnapshotHeader(SnapshotSend{To: 3, Message: &pb.Message{
			Type: pb.MsgSnap.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: &term,
		}}, snap.Meta())
		require.NoError(t, err)
		require.NoError(t, behind.r.OfferSnapshot(1, header))
		beat := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: &term, Commit: &last}
		require.NoError(t, behind.r.Receive(wire.Message{Group: 7, From: 1, To: 3, Body: wire.Raft{Message: beat}}))
		c.arrive(behind, header, snap)
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
	c.lose = func(m wire.Message) bool {
		raft, ok := m.Body.(wire.Raft)
		if ok && m.To == 3 && len(raft.GetEntries()) > 0 {
			raft.Commit = &before
			return false
		}
		return m.To == 3 // it has the entries, and does not know that they are committed
	}
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
	term, last := home.r.state.Term, c.nodes[1].r.state.Commit
	require.Equal(t, before, home.r.state.Commit)

	header, err := SnapshotHeader(SnapshotSend{To: 3, Message: &pb.Message{
		Type: pb.MsgSnap.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: &term,
	}}, snap.Meta())
	require.NoError(t, err)
	require.NoError(t, home.r.OfferSnapshot(1, header))
	beat := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: &term, Commit: &last}
	require.NoError(t, home.r.Receive(wire.Message{Group: 7, From: 1, To: 3, Body: wire.Raft{Message: beat}}))
	c.arrive(home, header, snap)
	c.lose = func(wire.Message) bool { return false }
	c.g.attach(false) // in the turn in which the snapshot is restored
	c.settle()
	c.run(30)
	require.Contains(t, c.agree(), "a")
	require.ErrorIs(t, c.result(call).Err, ErrUnknown)
	require.ErrorIs(t, c.result(call).Err, ErrSuperseded)
}
