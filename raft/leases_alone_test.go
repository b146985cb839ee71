// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

func removal(id uint64) *pb.ConfChangeV2 {
	return &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: new(id)}}}
}

// Members are removed one after another, and are gone at once. The leader that is left
// commits and reads: also where its host reports a change as applied before the change is
// in force, which is how etcd's integration tests found it.
func TestLeaderThatIsLeftAloneGoesOn(t *testing.T) {
	for _, late := range []bool{false, true} {
		g := newLeaseGroup(t, 5, 5, nil, func(c *raft.Config) { c.Leases.Wanted = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}} })
		l := g.nodes[1]
		l.late = late
		g.pass(100 * ms)
		for id := uint64(5); id > 1; id-- {
			g.change(removal(id))
			g.until("the change is in force", time.Second, func() bool { return len(l.conf.GetVoters()) == int(id)-1 })
			g.isolate(id)
			g.pass(20 * ms)
		}
		i := l.commit() + 1
		require.NoError(t, l.rn.Propose([]byte("x")))
		l.work()
		g.until("a write is committed", time.Second, func() bool { return l.commit() >= i })
		ctx := l.read()
		g.until("a read is answered", time.Second, func() bool { return l.told(ctx) })
		require.GreaterOrEqual(t, l.readings[ctx], i)
	}
}

// A host refuses a change: by its report, if it puts changes into force before it reports
// them. Responders are named again.
func TestRefusedChangeHoldsResponderUpForAWhileOnly(t *testing.T) {
	for _, first := range []bool{true, false} {
		g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, func(c *raft.Config) { c.ConfChangesFirst = first })
		g.pass(100 * ms)
		l := g.nodes[1]
		for _, n := range g.nodes {
			n.refuses = true
		}
		g.change(removal(3))
		g.until("nobody is named", time.Second, func() bool { return len(l.rn.LeaseStatus().Roster.Spans) == 0 })
		i := g.write("x")
		g.until("a write is committed", time.Second, func() bool { return l.commit() >= i })
		require.Len(t, l.conf.GetVoters(), 3)
		if !first {
			g.pass(20 * leasePatience)
			require.False(t, g.stable(2), "the change may still be applied")
			l.rn.ApplyConfChange(&pb.ConfChange{NodeId: new(uint64)}) // as etcd refuses a change
			l.work()
		}
		g.until("node 2 is a responder again", time.Second, func() bool { return g.stable(2) })
	}
}
