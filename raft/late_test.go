// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// lateTimeout is the election timeout of the groups here.
const lateTimeout = 10 * leaseTick

// groupWithHungDisks is a group of n, led by node 1, after whose last write the disks of some hang.
func groupWithHungDisks(t *testing.T, n int, yields bool, hang ...uint64) *leaseGroup {
	g := newLeaseGroup(t, n, n, nil, func(c *raft.Config) { c.YieldWhenLate = yields })
	for _, id := range hang {
		g.nodes[id].stuck = true
	}
	g.write("under way")
	return g
}

// goOn ends the hang of a disk.
func (n *leaseNode) goOn() {
	n.stuck = false
	n.write()
	n.work()
}

// A leader whose writes do not end hands over an election timeout later, to a voter with what it has
// sent, and takes no proposals; the others go on at once, and so does the node when its disk does.
func TestLateLeaderHandsOver(t *testing.T) {
	g := groupWithHungDisks(t, 5, true, 1, 2)
	g.pass(lateTimeout - leaseTick)
	require.Equal(t, uint64(1), g.leader().id, "not late yet")
	took := g.until("another leads", time.Second, func() bool { return g.leader() != nil && g.leader().id != 1 })
	require.Less(t, took, 5*leaseTick)
	require.Equal(t, uint64(3), g.leader().id, "the first that has what node 1 has not")
	require.NotEqual(t, raft.StateLeader, g.nodes[1].rn.BasicStatus().RaftState)
	index := g.write("by the next")
	g.until("commit", time.Second, func() bool { return g.leader().commit() >= index })
	g.nodes[1].goOn()
	g.until("node 1 is back", time.Second, func() bool { return g.nodes[1].commit() >= index })
	require.Equal(t, uint64(3), g.leader().id)
}

// The same leader, when each order to campaign gets lost, steps down after another election timeout,
// and is silent from then on. Proposals are dropped meanwhile.
func TestLateLeaderStepsDownIfNobodyTakesOver(t *testing.T) {
	g := groupWithHungDisks(t, 3, true, 1)
	g.drop = func(m *pb.Message) bool { return m.GetType() == pb.MsgTimeoutNow }
	g.pass(lateTimeout + 2*leaseTick)
	require.Equal(t, uint64(1), g.leader().id)
	require.ErrorIs(t, g.nodes[1].rn.Propose([]byte("x")), raft.ErrProposalDropped)
	g.until("it steps down", lateTimeout+2*leaseTick, func() bool { return g.leader() == nil })
	g.sent = func(m *pb.Message) {
		require.False(t, m.GetFrom() == 1 && (m.GetType() == pb.MsgHeartbeat || m.GetType() == pb.MsgApp), "%v", m)
	}
	g.until("another leads", 3*lateTimeout, func() bool { return g.leader() != nil })
	require.NotEqual(t, uint64(1), g.leader().id)
}

// If no majority has more than the leader, all disks may be as slow: the leader drops proposals, and
// stays.
func TestLateLeaderStaysIfNoMajorityIsAhead(t *testing.T) {
	g := groupWithHungDisks(t, 5, true, 1, 2, 3)
	g.pass(5 * lateTimeout)
	require.Equal(t, uint64(1), g.leader().id)
	require.ErrorIs(t, g.nodes[1].rn.Propose([]byte("x")), raft.ErrProposalDropped)
	for _, id := range []uint64{1, 2, 3} {
		g.nodes[id].goOn()
	}
	index := g.write("after")
	g.until("commit", time.Second, func() bool { return g.leader().commit() >= index })
	require.Equal(t, uint64(1), g.leader().id)
}

// A follower whose writes do not end asks for no vote, neither by itself nor when told to.
func TestLateFollowerDoesNotCampaign(t *testing.T) {
	g := groupWithHungDisks(t, 3, true, 2)
	g.pass(lateTimeout + 2*leaseTick)
	g.isolate(2)
	term := g.nodes[2].term()
	g.pass(5 * lateTimeout)
	require.Equal(t, raft.StateFollower, g.nodes[2].rn.BasicStatus().RaftState)
	_ = g.nodes[2].rn.Step(&pb.Message{Type: pb.MsgTimeoutNow.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(term)})
	require.NoError(t, g.nodes[2].rn.Campaign())
	g.pass(lateTimeout)
	require.Equal(t, term, g.nodes[2].term())
	require.Equal(t, raft.StateFollower, g.nodes[2].rn.BasicStatus().RaftState)
	g.nodes[2].goOn()
	require.NoError(t, g.nodes[2].rn.Campaign())
	require.Equal(t, raft.StatePreCandidate, g.nodes[2].rn.BasicStatus().RaftState)
}

// Without the setting a leader whose disk hangs leads on, as upstream's does.
func TestLateLeaderStaysByDefault(t *testing.T) {
	g := groupWithHungDisks(t, 3, false, 1)
	g.pass(10 * lateTimeout)
	require.Equal(t, uint64(1), g.leader().id)
	require.NoError(t, g.nodes[1].rn.Propose([]byte("x")))
}
