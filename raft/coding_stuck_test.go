// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// stuckFollower returns a group of three in which node 2 has committed an entry whose
// units are lost: leader 1 has applied and compacted it, and node 3 is dead.
func stuckFollower(t *testing.T) (g *group, want [][]byte) {
	g = newGroup(t, 3)
	g.reports = true
	g.policy = func() ecraft.Policy { return ecraft.Fixed(2) }
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	want = append(want, payload(1, 3000))
	g.drop = func(m *pb.Message) bool { return m.GetType() == raft.MsgUnits || m.GetType() == raft.MsgUnitsAsk }
	g.propose(1, want[0])
	g.requireApplied(want, 1)
	g.requireApplied(nil, 2)
	g.compact(1, g.nodes[1].index)
	g.stop(3)
	g.drop = nil
	return g, want
}

// snapshots lets ticks pass, with a leader whose host makes a snapshot of what is new.
func (g *group) snapshots(id uint64, ticks int) {
	n := g.nodes[id]
	for range ticks {
		g.tick(1)
		if first, err := n.storage.FirstIndex(); err == nil && n.index >= first {
			g.compact(id, n.index)
		}
	}
}

// TestStuckFollowerWithUnacknowledgedEntry: a follower that is stuck has stored an
// entry of which the acknowledgement was lost, together with the connection. A
// snapshot of before that entry does not help it, however often it is sent: the entry
// is sent again, and a snapshot that covers it.
func TestStuckFollowerWithUnacknowledgedEntry(t *testing.T) {
	g, want := stuckFollower(t)
	want = append(want, payload(2, 3000))
	g.busy = func(uint64) bool { return true }
	for g.nodes[1].rn.CodingStatus().Members[2].StuckAt == 0 {
		g.tick(1)
	}
	g.tick(12) // the leader waits for its host, and holds nothing back any more
	g.drop = func(m *pb.Message) bool { return m.GetFrom() == 2 }
	g.propose(1, want[1])
	g.nodes[1].rn.ReportUnreachable(2)
	g.drop, g.busy = nil, nil
	g.snapshots(1, 60)
	g.requireApplied(want, 1, 2)
	require.Less(t, g.events[raft.CodingSnapshot], 4)
}

// TestStuckFollowerWithEntryOfFormerLeader: a follower that is stuck has an entry that
// only it got from a leader that failed. The next leader does not know of that entry,
// and its snapshot of before does not help the follower: one that reaches its own term
// does.
func TestStuckFollowerWithEntryOfFormerLeader(t *testing.T) {
	g := newGroup(t, 5)
	g.reports = true
	g.elect(1)
	want := [][]byte{payload(1, 3000)}
	starves := func(m *pb.Message) bool { return m.GetType() == raft.MsgUnits && m.GetTo() == 2 }
	g.drop = starves
	g.propose(1, want[0])
	for _, id := range []uint64{1, 3, 4, 5} {
		g.requireApplied(want, id)
		g.compact(id, g.nodes[id].index)
	}
	g.drop = func(m *pb.Message) bool { return m.GetFrom() != 1 || m.GetTo() != 2 }
	g.propose(1, payload(2, 3000))
	g.stop(1)
	g.drop = func(m *pb.Message) bool { return m.GetFrom() == 2 || m.GetType() == pb.MsgApp }
	lead := uint64(0)
	for ; lead == 0 || lead == 1; lead = g.nodes[3].rn.BasicStatus().Lead {
		g.tick(1)
	}
	g.stop(map[uint64]uint64{3: 4, 4: 5, 5: 3}[lead])
	g.drop = func(m *pb.Message) bool { return m.GetType() == pb.MsgApp && m.GetTo() == 2 }
	for g.nodes[lead].rn.CodingStatus().Members[2].StuckAt == 0 {
		g.tick(1)
	}
	last, err := g.nodes[2].storage.LastIndex()
	require.NoError(t, err)
	require.Greater(t, last, g.nodes[lead].index)
	g.drop = nil
	g.snapshots(lead, 60)
	g.requireApplied(want, 2)
	g.propose(lead, payload(3, 3000))
	g.requireApplied(append(want, payload(3, 3000)), 2, lead)
}

// TestSlowSnapshotHelpsUnderLoad: a host takes several election timeouts for a snapshot
// of what is applied when it is asked, while entries are proposed all the time. New
// entries are held back from the follower that is stuck for long enough that one of
// these snapshots covers its log.
func TestSlowSnapshotHelpsUnderLoad(t *testing.T) {
	const takes = 45
	g, _ := stuckFollower(t)
	n, now, ready := g.nodes[1], 0, 0
	var index uint64
	var state []byte
	g.busy = func(id uint64) bool {
		if ready == 0 && id == 1 {
			index, state, ready = n.index, encodeAll(n.applied), now+takes
		}
		return true
	}
	for ; g.nodes[2].index < 100; now++ {
		require.Less(t, now, 1000, "ticks")
		if now == ready {
			_, cs, err := n.storage.InitialState()
			require.NoError(t, err)
			_, err = n.storage.CreateSnapshot(index, cs, state)
			require.True(t, err == nil || errors.Is(err, raft.ErrSnapOutOfDate), "%v", err)
			ask := g.busy
			g.busy = nil
			g.tick(1)
			g.busy, ready = ask, 0
		}
		require.NoError(t, n.rn.Propose(payload(now, 200)))
		g.tick(1)
	}
}
