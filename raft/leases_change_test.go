// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

func (g *leaseGroup) change(cc *pb.ConfChangeV2) {
	l := g.leader()
	require.NoError(g.t, l.rn.ProposeConfChange(cc))
	l.work()
}

// A change of the configuration is held until nobody is named and a majority knows it.
// Then the responders are named again, in the new configuration.
func TestChangeWaitsUntilNobodyIsNamed(t *testing.T) {
	g := newLeaseGroup(t, 4, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	l := g.nodes[1]
	before := l.commit()
	g.change(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}}})
	g.pass(ms / 2)
	require.Equal(t, before, l.commit())
	require.True(t, g.stable(2), "it has not heard yet that it is a responder no more")
	g.until("the change is applied at the leader", time.Second, func() bool { return len(l.conf.GetVoters()) == 4 })
	require.False(t, g.stable(2))
	g.until("node 2 is a responder again", time.Second, func() bool { return g.stable(2) })
	r := g.nodes[2].rn.LeaseStatus().Roster
	require.Len(t, r.Voters.Incoming, 4)
}

// While a responder does not answer, the change waits for its leases to end.
func TestChangeWaitsForTheLeasesOfADeadResponder(t *testing.T) {
	g := newLeaseGroup(t, 4, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	g.isolate(2)
	l := g.nodes[1]
	g.change(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}}})
	took := g.until("the change is applied at the leader", time.Second, func() bool {
		applied := len(l.conf.GetVoters()) == 4
		require.False(t, applied && g.stable(2), "node 2 answers reads, and does not know the configuration")
		return applied
	})
	require.Greater(t, took, leasePatience/2)
	require.Less(t, took, leaseTime)
}

// A joint configuration is entered and left with nobody named in it.
func TestNobodyIsNamedInAJointConfiguration(t *testing.T) {
	g := newLeaseGroup(t, 5, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	g.change(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{
		{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}, {Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(5))},
		{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(3))},
	}, Transition: pb.ConfChangeTransitionJointImplicit.Enum()})
	joint := false
	g.until("it is left", time.Second, func() bool {
		conf := g.nodes[1].conf
		if len(conf.GetVotersOutgoing()) > 0 {
			joint = true
			require.False(t, g.stable(2))
		}
		return joint && len(conf.GetVotersOutgoing()) == 0
	})
	g.until("node 2 is a responder again", time.Second, func() bool { return g.stable(2) })
}

// While a change waits for leases, another is refused: an empty entry takes its place.
func TestSecondChangeIsRefusedWhileOneWaits(t *testing.T) {
	g := newLeaseGroup(t, 4, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	g.isolate(2)
	cc := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}}}
	g.change(cc)
	g.change(cc)
	l := g.nodes[1]
	i := l.commit()
	g.until("the first is applied", time.Second, func() bool { return len(l.conf.GetVoters()) == 4 })
	require.Equal(t, i+2, l.confAt)
}

// A leader that hands over empties its roster, gives its leases back, and only then has
// the other campaign, who wins at once.
func TestTransferGivesLeasesBackFirst(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2, 3}, nil)
	g.pass(50 * ms)
	g.nodes[1].rn.TransferLeader(3)
	g.nodes[1].work()
	told := false
	g.sent = func(m *pb.Message) {
		if m.GetType() == pb.MsgTimeoutNow {
			told = true
			require.False(t, g.stable(1))
			require.False(t, g.stable(2))
		}
	}
	took := g.until("node 3 leads", time.Second, func() bool { l := g.leader(); return l != nil && l.id == 3 })
	require.True(t, told)
	require.Less(t, took, 25*ms, "a few rounds")
	g.until("node 2 is a responder", time.Second, func() bool { return g.stable(2) })
}

// A leader with leases hands over to a member without leases: one of few, of a majority, or
// of all others, which never had leases in this term or ran with leases before.
func TestTransferToAMemberWithoutLeases(t *testing.T) {
	handOver := func(t *testing.T, g *leaseGroup) {
		g.nodes[1].rn.TransferLeader(3)
		g.nodes[1].work()
		took := g.until("node 3 leads", time.Second, func() bool { l := g.leader(); return l != nil && l.id == 3 })
		require.Less(t, took, 25*ms, "a few rounds")
		i := g.write("x")
		g.until("it is committed", time.Second, func() bool { return g.nodes[3].commit() >= i })
	}
	for _, without := range [][]uint64{{3}, {2, 3}} {
		t.Run(fmt.Sprint("never had them: ", without), func(t *testing.T) {
			g := newLeaseGroup(t, 5, 5, nil, func(c *raft.Config) {
				if slices.Contains(without, c.ID) {
					c.Leases = nil
				}
			})
			g.pass(leaseTime)
			handOver(t, g)
		})
	}
	for _, without := range [][]uint64{{3}, {2, 3}, {3, 4, 5}, {2, 3, 4, 5}} {
		for _, retired := range []bool{true, false} {
			t.Run(fmt.Sprintf("restarted without: %v, retired first: %t", without, retired), func(t *testing.T) {
				g := newLeaseGroup(t, 5, 5, []leases.NodeID{2, 3}, nil)
				if retired {
					require.NoError(t, g.nodes[1].rn.RetireLeases(true))
					g.nodes[1].work()
					g.until("leases are retired", time.Second, func() bool { return g.nodes[1].rn.LeaseStatus().Retired })
				}
				g.restartWithoutLeases(without...)
				handOver(t, g)
			})
		}
	}
}

// restartWithoutLeases restarts nodes one by one; each waits until its promises have ended.
func (g *leaseGroup) restartWithoutLeases(ids ...uint64) {
	g.set = func(c *raft.Config) { c.Leases = nil }
	for _, id := range ids {
		g.nodes[id].stop()
		g.nodes[id].restart()
		g.pass(2 * leaseTime)
	}
}

// Most members were restarted without leases and not retired first. When a responder dies,
// writes wait for it, and so does a change that removes it, because too few
// members adopt a roster without it. A transfer to a member without leases is the way out.
func TestTransferIsTheWayOutWhereTooFewHaveLeases(t *testing.T) {
	g := newLeaseGroup(t, 5, 5, []leases.NodeID{2}, nil)
	g.restartWithoutLeases(3, 4, 5)
	g.nodes[2].stop()
	i := g.write("x")
	g.pass(5 * leaseTime)
	require.Less(t, g.nodes[1].commit(), i, "the write waits for the responder")
	g.nodes[1].rn.TransferLeader(3)
	g.nodes[1].work()
	g.until("node 3 leads", time.Second, func() bool { l := g.leader(); return l != nil && l.id == 3 })
	g.until("the write is committed", time.Second, func() bool { return g.nodes[3].commit() >= i })
}

// A transfer that comes to nothing leaves a leader that reads by its lease, and names
// responders again.
func TestTransferThatFailsEndsNothing(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	g.isolate(3)
	g.nodes[1].rn.TransferLeader(3)
	g.nodes[1].work()
	g.pass(20 * ms)
	require.Equal(t, uint64(3), g.nodes[1].rn.BasicStatus().LeadTransferee)
	g.until("it reads by its lease again", time.Second, func() bool { return g.stable(1) && g.stable(2) })
	require.Zero(t, g.nodes[1].rn.BasicStatus().LeadTransferee)
	require.Equal(t, uint64(1), g.leader().id)
}

// Leases that are retired stay off with the next leader, and come back when they are
// switched on again.
func TestRetiredLeasesStayOff(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	require.ErrorIs(t, g.nodes[2].rn.RetireLeases(true), leases.ErrNotLeader)
	require.NoError(t, g.nodes[1].rn.RetireLeases(true))
	g.nodes[1].work()
	g.until("they are", time.Second, func() bool { return g.nodes[1].rn.LeaseStatus().Retired })
	require.False(t, g.stable(1))
	require.False(t, g.stable(2))
	ctx := g.nodes[2].read()
	g.until("a read asks the leader", 10*ms, func() bool { return g.nodes[2].told(ctx) })
	g.nodes[1].rn.TransferLeader(2)
	g.nodes[1].work()
	g.until("node 2 leads", time.Second, func() bool { l := g.leader(); return l != nil && l.id == 2 })
	g.pass(100 * ms)
	require.False(t, g.stable(2))
	require.NoError(t, g.nodes[2].rn.RetireLeases(false))
	require.NoError(t, g.nodes[2].rn.SetResponders([]leases.Want{{Nodes: []leases.NodeID{1, 3}}}))
	g.nodes[2].work()
	g.until("all answer reads", time.Second, func() bool { return g.stable(1) && g.stable(2) && g.stable(3) })
}

// A node whose disk does not have its term yet says nothing in it, grants nothing, and
// adopts nothing.
func TestNothingIsGrantedBeforeTheTermIsOnDisk(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	n := g.nodes[3]
	n.stuck = true
	g.isolate(3)
	g.nodes[1].rn.TransferLeader(2)
	g.nodes[1].work()
	g.until("node 2 leads", time.Second, func() bool { return g.leader() != nil && g.leader().id == 2 })
	g.pass(leaseTime)
	g.mend()
	g.until("node 3 follows it", time.Second, func() bool { return n.rn.BasicStatus().Lead == 2 })
	g.pass(50 * ms)
	s := n.rn.LeaseStatus()
	require.NotNil(t, s.Roster)
	require.Zero(t, s.Adopted)
	require.Empty(t, s.Promises)
	n.stuck = false
	n.write()
	g.until("it takes part", 100*ms, func() bool { s := n.rn.LeaseStatus(); return s.Adopted > 0 && len(s.Promises) > 0 })
}

// A responder that gets a snapshot is stable again when it has what is behind it.
func TestResponderThatGetsASnapshotGoesOn(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	g.isolate(2)
	i := g.write("x")
	g.until("it is committed without node 2", time.Second, func() bool { return g.nodes[1].commit() >= i })
	l := g.nodes[1]
	_, err := l.disk.CreateSnapshot(i, l.conf, nil)
	require.NoError(t, err)
	require.NoError(t, l.disk.Compact(i))
	require.False(t, g.stable(2))
	g.mend()
	g.until("it is a responder", time.Second, func() bool { return g.stable(2) })
	require.Equal(t, i, g.nodes[2].readings[g.nodes[2].read()])
	first, err := g.nodes[2].disk.FirstIndex()
	require.NoError(t, err)
	require.Equal(t, i+1, first)
}

// A leader that was cut off has entries of other keys where the others have committed a write, and gets the write
// with a snapshot. Its host has written the snapshot, which is acknowledged, and goes on to apply it. A read that the
// node may answer by then, as a responder, has to see the write.
func TestReadSeesWhatASnapshotBrings(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{1}, func(c *raft.Config) {
		c.Leases.Spans = func(data []byte) []leases.Span { return []leases.Span{leases.KeySpan(string(data))} }
	})
	n := g.nodes[1]
	g.isolate(1)
	for range 10 {
		require.NoError(t, n.rn.Propose([]byte("y")))
	}
	g.until("another leads", time.Second, func() bool { return g.leader().id != 1 })
	l := g.leader()
	g.write("x")
	g.pass(20 * ms)
	i := l.applied
	ents, err := l.disk.Entries(i, i+1, 1)
	require.NoError(t, err)
	require.Equal(t, "x", string(ents[0].GetData()))
	_, err = l.disk.CreateSnapshot(i, l.conf, nil)
	require.NoError(t, err)
	require.NoError(t, l.disk.Compact(i))
	n.keeps = func(m *pb.Message) bool { return m.GetType() == pb.MsgStorageAppendResp && m.GetSnapshot() != nil }
	g.mend()
	g.until("it is a responder", time.Second, func() bool { return g.stable(1) })
	require.Equal(t, i, n.readings[n.read(leases.KeySpan("x"))])
}

// withNotes turns early accept notes on.
func withNotes(c *raft.Config) { c.Leases.Notes = true }

// With notes a responder knows that a write is committed as soon as a majority and all
// responders have told it that they hold it, before the leader tells.
func TestNotesReleaseAReadBeforeTheLeaderTells(t *testing.T) {
	for _, notes := range []bool{false, true} {
		g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, func(c *raft.Config) { c.Leases.Notes = notes })
		g.pass(50 * ms)
		began := g.now
		i := g.write("x")
		n := g.nodes[2]
		g.until("node 2 commits it", time.Second, func() bool { return n.commit() >= i })
		took := g.now - began
		if notes {
			require.Less(t, took, 2*ms, "one message, and one write")
			require.Less(t, g.nodes[1].commit(), i)
			require.Equal(t, uint64(1), n.rn.LeaseStatus().Reads.NoteCommits)
		} else {
			require.Greater(t, took, 3*ms, "an acknowledgement, and the news of the leader")
		}
	}
}

// A host may have a leader send while it writes (thesis 10.2.1). What the leader's note says is on its disk all the same.
func TestLeadersNoteWaitsWhereALeaderSendsFirst(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, func(c *raft.Config) { withNotes(c); c.AsyncStorageWrites = false })
	notes := 0
	g.sent = func(m *pb.Message) {
		if m.GetType() == raft.MsgLeases && m.GetContext()[0] == 'n' && m.GetFrom() == 1 {
			last, err := g.nodes[1].disk.LastIndex()
			require.NoError(t, err)
			require.LessOrEqual(t, m.GetIndex(), last)
			notes++
		}
	}
	g.write("x")
	g.pass(5 * ms)
	require.Positive(t, notes)
}

// A responder has answered a read with a write that the leader does not know to be
// committed. The leader's own reads, and those that it is asked, wait for the write.
func TestReadsAtTheLeaderWaitForWhatNotesMayHaveReleased(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, withNotes)
	g.pass(50 * ms)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 1 && m.GetType() == pb.MsgAppResp }
	i := g.write("x")
	g.until("node 2 commits it", time.Second, func() bool { return g.nodes[2].commit() >= i })
	require.Equal(t, i, g.nodes[2].readings[g.nodes[2].read()])
	require.Less(t, g.nodes[1].commit(), i)
	own, asked := g.nodes[1].read(), g.nodes[3].read()
	g.pass(5 * ms)
	require.False(t, g.nodes[1].told(own))
	require.False(t, g.nodes[3].told(asked))
	require.Equal(t, 2, g.nodes[1].rn.LeaseStatus().Waiting)
	g.drop = nil
	g.until("they are answered", time.Second, func() bool { return g.nodes[1].told(own) && g.nodes[3].told(asked) })
	require.GreaterOrEqual(t, g.nodes[1].readings[own], i)
	require.GreaterOrEqual(t, g.nodes[3].readings[asked], i)
}

// A leader without a lease confirms a read by a round of heartbeats. It still takes the
// index that notes ask for, and waits for that to be committed.
func TestLeaderWithoutALeaseReadsWhatNotesMayHaveReleased(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, withNotes)
	g.pass(50 * ms)
	acks := func(m *pb.Message) bool { return m.GetTo() == 1 && m.GetType() == pb.MsgAppResp }
	g.drop = acks
	i := g.write("x")
	g.until("node 2 commits it", time.Second, func() bool { return g.nodes[2].commit() >= i })
	g.drop = func(m *pb.Message) bool { return acks(m) || m.GetTo() == 1 && m.GetType() == raft.MsgLeases }
	g.until("the leader's lease ends", time.Second, func() bool { return !g.stable(1) })
	require.Less(t, g.nodes[1].commit(), i)
	rounds := g.count(pb.MsgHeartbeat)
	own := g.nodes[1].read()
	g.pass(5 * ms)
	require.Positive(t, *rounds)
	require.False(t, g.nodes[1].told(own))
	g.drop = nil
	g.until("it is told", time.Second, func() bool { return g.nodes[1].told(own) })
	require.GreaterOrEqual(t, g.nodes[1].readings[own], i)
}

// A leader that holds reads steps down. The reads go to the next leader.
func TestReadThatALeaderHoldsGoesToTheNextLeader(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, withNotes)
	g.pass(50 * ms)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 1 && m.GetType() == pb.MsgAppResp }
	i := g.write("x")
	g.until("node 2 commits it", time.Second, func() bool { return g.nodes[2].commit() >= i })
	asked := g.nodes[3].read()
	own := g.nodes[1].read()
	g.pass(5 * ms)
	g.drop = nil
	g.isolate(1)
	g.until("another leads", time.Second, func() bool { l := g.leader(); return l != nil && l.id != 1 })
	require.False(t, g.nodes[1].told(own))
	g.mend()
	g.until("both are told", time.Second, func() bool { return g.nodes[1].told(own) && g.nodes[3].told(asked) })
	require.GreaterOrEqual(t, g.nodes[1].readings[own], i)
	require.GreaterOrEqual(t, g.nodes[3].readings[asked], i)
}

// A leader that has its lease and commits nothing does not keep what others ask again and again.
func TestLeaderForgetsReadsOfOthersThatWaitForLong(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, withNotes)
	g.pass(50 * ms)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 1 && m.GetType() == pb.MsgAppResp }
	g.write("x")
	own := g.nodes[1].read()
	for range 400 {
		g.nodes[3].read()
		g.pass(10 * ms)
	}
	require.Less(t, g.nodes[1].rn.LeaseStatus().Waiting, 200)
	g.drop = nil
	last := g.nodes[3].read()
	g.until("reads go on", time.Second, func() bool { return g.nodes[1].told(own) && g.nodes[3].told(last) })
}

// With coding a note rides with the units that are pushed anyway. Of the six notes of
// followers two go to responders that their senders push nothing to.
func TestNotesRideWithPushedUnits(t *testing.T) {
	g := newLeaseGroup(t, 5, 5, []leases.NodeID{2, 3}, func(c *raft.Config) {
		c.Leases.Notes = true
		c.Coding = &raft.Coding{Threshold: 64}
	})
	g.pass(100 * ms)
	apart, pushed := 0, 0
	g.sent = func(m *pb.Message) {
		switch {
		case m.GetType() == raft.MsgLeases && m.GetContext()[0] == 'n' && m.GetFrom() != 1:
			apart++
		case m.GetType() == raft.MsgUnits:
			pushed++
		}
	}
	data := make([]byte, 1000)
	i := g.write(string(data))
	g.until("node 2 commits it", time.Second, func() bool { return g.nodes[2].commit() >= i })
	require.Equal(t, uint64(1), g.nodes[2].rn.LeaseStatus().Reads.NoteCommits, "not by the news of the leader")
	require.Positive(t, pushed)
	require.Equal(t, 2, apart)
	g.until("it is whole", time.Second, func() bool { return g.nodes[2].applied >= i })
}
