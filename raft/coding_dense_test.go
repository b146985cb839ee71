// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// densifyAll asks every node for a log without coded entries.
func (g *group) densifyAll() {
	for _, id := range g.ids() {
		if !g.down[id] {
			g.nodes[id].rn.Densify(true)
		}
	}
	g.tick(3)
}

// logIsPlain reports whether no entry of a node's Storage is an envelope.
func (g *group) logIsPlain(id uint64) bool {
	s := g.nodes[id].storage
	first, err := s.FirstIndex()
	require.NoError(g.t, err)
	last, err := s.LastIndex()
	require.NoError(g.t, err)
	for i := first; i <= last; i++ {
		ents, err := s.Entries(i, i+1, 0)
		require.NoError(g.t, err)
		if ecraft.IsEnvelope(ents[0].GetData(), 0) {
			return false
		}
	}
	return true
}

// TestLogIsDenseOnlyWhenTheSnapshotIsWritten: a snapshot that stands for all coded
// entries of a log does so when Storage has it. Until then a process that is killed
// finds the coded entries again.
func TestLogIsDenseOnlyWhenTheSnapshotIsWritten(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.tick(3)
	g.stop(3)
	g.propose(1, payload(1, 10))
	for _, id := range []uint64{1, 2} {
		g.compact(id, g.nodes[id].index)
	}
	g.down[3] = false
	n, got := g.nodes[3], false
	g.stepped = func(m *pb.Message) {
		if m.GetTo() == 3 && m.GetType() == pb.MsgSnap {
			got = true
			require.False(t, g.logIsPlain(3))
			require.False(t, n.rn.CodingStatus().Dense, "the snapshot is not written")
			require.Less(t, n.rn.CodingStatus().Released, m.GetSnapshot().GetMetadata().GetIndex())
		}
	}
	g.tick(20)
	require.True(t, got, "a snapshot was sent")
	require.True(t, g.logIsPlain(3))
	require.True(t, n.rn.CodingStatus().Dense)
	require.Equal(t, g.nodes[1].index, n.rn.CodingStatus().Released)
}

// codedTail returns a group in which node 1 led, and has a coded entry at the end of
// its log that no other node has, in place of which the others have a plain one. It is
// the only coded entry. Node 1 is down.
func codedTail(t *testing.T) *group {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 10))
	g.tick(3)
	g.drop = func(m *pb.Message) bool { return m.GetFrom() == 1 }
	g.propose(1, payload(1, 1000))
	require.NotZero(t, g.events[raft.CodingEncoded])
	require.False(t, g.logIsPlain(1))
	require.False(t, g.nodes[1].rn.CodingStatus().Dense)
	g.stop(1)
	g.tick(40)
	g.drop = nil
	return g
}

// TestLogIsDenseAfterItsCodedTailWasReplaced: what stands in the place of a coded tail
// is plain, and so is the log, although no host compacts anything.
func TestLogIsDenseAfterItsCodedTailWasReplaced(t *testing.T) {
	for _, restart := range []bool{false, true} {
		g := codedTail(t)
		if restart {
			g.start(1)
		}
		g.down[1] = false
		g.tick(30)
		g.densifyAll()
		for _, id := range g.ids() {
			require.True(t, g.logIsPlain(id))
			require.True(t, g.nodes[id].rn.CodingStatus().Dense, "node %d", id)
		}
	}
}

// TestLogIsDenseOnlyWhenTheReplacementIsWritten: until the plain entries in the place of
// a coded tail are written, Storage has the coded ones.
func TestLogIsDenseOnlyWhenTheReplacementIsWritten(t *testing.T) {
	g := codedTail(t)
	g.down[1] = false
	n, replaced := g.nodes[1], false
	g.stepped = func(m *pb.Message) {
		if m.GetTo() != 1 || m.GetType() != pb.MsgApp || len(m.GetEntries()) == 0 || g.logIsPlain(1) {
			return
		}
		require.False(t, n.rn.CodingStatus().Dense, "the coded tail is in Storage")
		replaced = true
	}
	g.tick(30)
	require.True(t, replaced)
	require.True(t, g.logIsPlain(1))
	g.densifyAll()
	require.True(t, n.rn.CodingStatus().Dense)
}
