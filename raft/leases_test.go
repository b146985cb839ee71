// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

const ms = time.Millisecond

// count has a group count messages of some types.
func (g *leaseGroup) count(types ...pb.MessageType) *int {
	n := 0
	g.sent = func(m *pb.Message) {
		for _, t := range types {
			if m.GetType() == t {
				n++
			}
		}
	}
	return &n
}

// A responder and the leader answer reads at once and without a message; other
// nodes ask the leader, which needs no round of heartbeats for that.
func TestResponderAnswersReadsWithoutAMessage(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	i := g.write("x")
	g.until("the write is committed everywhere", time.Second, func() bool { return g.nodes[3].commit() >= i && g.nodes[2].commit() >= i })
	asked := g.count(pb.MsgReadIndex, pb.MsgReadIndexResp)
	for _, id := range []uint64{1, 2} {
		n := g.nodes[id]
		ctx := n.read()
		require.True(t, n.told(ctx), "node %d", id)
		require.Equal(t, i, n.readings[ctx])
	}
	require.Zero(t, *asked)
	ctx := g.nodes[3].read()
	require.False(t, g.nodes[3].told(ctx))
	g.pass(2*ms + ms/10)
	require.True(t, g.nodes[3].told(ctx), "one message to the leader and one back, and no heartbeats between")
	require.Equal(t, 2, *asked)
	require.Equal(t, uint64(1), g.nodes[2].rn.LeaseStatus().Reads.Local)
	require.Equal(t, uint64(2), g.nodes[1].rn.LeaseStatus().Reads.Leader)
}

// A learner may be a responder.
func TestLearnerAnswersReads(t *testing.T) {
	g := newLeaseGroup(t, 4, 3, []leases.NodeID{4}, nil)
	i := g.write("x")
	g.until("the write is committed", time.Second, func() bool { return g.nodes[4].commit() >= i })
	ctx := g.nodes[4].read()
	require.Equal(t, i, g.nodes[4].readings[ctx])
}

// A read at a responder that has a write which is not committed is held until it is,
// because the leader may have committed the write, and told a client.
func TestReadIsHeldUntilTheWriteItMustSeeIsCommitted(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	i := g.write("x")
	g.pass(ms + ms/10) // it has arrived at node 2
	n := g.nodes[2]
	ctx := n.read()
	require.False(t, n.told(ctx))
	require.Equal(t, 1, n.rn.LeaseStatus().Waiting)
	g.until("the read is told its index", 5*ms, func() bool { return n.told(ctx) })
	require.GreaterOrEqual(t, n.readings[ctx], i)
	require.GreaterOrEqual(t, n.commit(), i)
}

// A read that may be held for as long as a number can say is held.
func TestLongestHoldIsNotTheShortest(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, func(c *raft.Config) { c.Leases.Hold = math.MaxInt64 })
	g.pass(50 * ms)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 1 && m.GetType() == pb.MsgAppResp }
	g.write("x")
	g.pass(ms + ms/10)
	n := g.nodes[2]
	n.read()
	g.pass(20 * ms)
	require.Equal(t, 1, n.rn.LeaseStatus().Waiting)
	require.Zero(t, n.rn.LeaseStatus().Reads.Redirected)
}

// A write whose keys a read does not look at does not hold the read up, also at a node
// that hears of the keys by the request.
func TestReadOfOtherKeysIsNotHeld(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, func(c *raft.Config) {
		c.Leases.Spans = func(data []byte) []leases.Span { return []leases.Span{leases.KeySpan(string(data))} }
	})
	i := g.write("x")
	g.until("it is committed", time.Second, func() bool { return g.nodes[2].commit() >= i })
	g.pass(50 * ms)
	g.write("y")
	g.pass(ms + ms/10)
	n := g.nodes[2]
	require.Equal(t, i, n.readings[n.read(leases.KeySpan("x"))])
	require.False(t, n.told(n.read(leases.KeySpan("y"))))
	require.False(t, n.told(n.read()), "every key")
}

// The entry that a held read waits for is cut from the log. The read goes to the leader
// at once.
func TestHeldReadGoesToTheLeaderWhenItsEntryIsCut(t *testing.T) {
	g := newLeaseGroup(t, 5, 5, []leases.NodeID{2}, func(c *raft.Config) { c.Leases.Hold = time.Minute })
	g.pass(50 * ms)
	for _, id := range []uint64{3, 4, 5} {
		g.sever(1, id) // they do not get the write
	}
	i := g.write("x")
	g.pass(2 * ms)
	n := g.nodes[2]
	ctx := n.read()
	require.False(t, n.told(ctx))
	g.isolate(1)
	g.isolate(2)
	g.until("another leads", time.Second, func() bool { l := g.leader(); return l.id > 2 })
	require.False(t, n.told(ctx))
	g.mend()
	g.isolate(1)
	g.until("the read is told", 50*ms, func() bool { return n.told(ctx) })
	require.Equal(t, uint64(1), n.rn.LeaseStatus().Reads.Cut)
	require.Equal(t, i, n.readings[ctx], "of the leader: its empty entry")
	require.GreaterOrEqual(t, n.commit(), n.readings[ctx])
}

// A leader waits for a responder before it commits, and if the responder is dead as long
// as it takes to be sure that the responder's leases have ended.
func TestDeadResponderHoldsAWriteUpOnce(t *testing.T) {
	g := newLeaseGroup(t, 5, 5, []leases.NodeID{2, 3}, nil)
	g.pass(100 * ms)
	g.nodes[2].stop()
	i := g.write("x")
	took := g.until("the write is committed", time.Second, func() bool { return g.nodes[1].commit() >= i })
	require.Greater(t, took, leaseFail-10*ms)
	require.Less(t, took, leaseFail+leaseTime+40*ms)
	i = g.write("y")
	took = g.until("the next is committed", time.Second, func() bool { return g.nodes[1].commit() >= i })
	require.Less(t, took, 5*ms)
	g.nodes[2].restart()
	g.until("it is a responder again", 2*time.Second, func() bool { return g.stable(2) })
	require.True(t, g.stable(3))
	require.Equal(t, uint64(1), g.nodes[1].rn.LeaseStatus().Counts.Removed)
}

// What a node has promised binds its vote in any later term, and its own campaigns,
// also where a candidate says that its leader wishes it so.
func TestPromisesBindVotes(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	voter := g.nodes[3]
	term := voter.term()
	ask := func(from uint64, wished bool) bool {
		granted := false
		g.sent = func(m *pb.Message) {
			if m.GetType() == pb.MsgVoteResp && m.GetTo() == from {
				granted = !m.GetReject()
			}
		}
		term++
		m := &pb.Message{Type: pb.MsgVote.Enum(), From: new(from), To: new(uint64(3)), Term: new(term), LogTerm: new(term), Index: new(uint64(100))}
		if wished {
			m.Context = []byte("CampaignTransfer")
		}
		require.NoError(t, voter.rn.Step(m))
		voter.work()
		g.pass(ms)
		return granted
	}
	for id := range g.nodes {
		g.sever(3, id)
	}
	delete(g.cut, [2]uint64{3, 1})
	delete(g.cut, [2]uint64{3, 2})
	require.False(t, ask(1, true), "it is bound to node 2 as well")
	require.False(t, ask(2, true), "it is bound to node 1 as well")
	require.NoError(t, voter.rn.Step(&pb.Message{Type: pb.MsgTimeoutNow.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: new(term)}))
	voter.work()
	require.Equal(t, raft.StateFollower, voter.rn.BasicStatus().RaftState)
	require.NoError(t, voter.rn.Campaign())
	require.Equal(t, raft.StateFollower, voter.rn.BasicStatus().RaftState)
	g.pass(leaseTime)
	require.True(t, ask(2, true))
}

// A node that starts has forgotten what it promised. It waits for as long as that may
// bind it before it votes or campaigns, unless it is new.
func TestRestartedNodeWaitsBeforeItVotes(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	for _, n := range g.nodes {
		n.stop()
		n.restart()
	}
	began := g.now
	g.until("a leader", time.Second, func() bool { return g.leader() != nil })
	require.GreaterOrEqual(t, g.now-began, leaseTime)
	require.Less(t, g.now-began, leaseTime+2*leasePatience+leaseTick)
	g.until("node 2 is a responder, or leads", time.Second, func() bool { return g.stable(2) })
}

// A node that has a snapshot and no term has promised nothing, and votes at once.
func TestNewNodeNeedNotWait(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, nil, nil)
	require.Less(t, g.now, leaseTime/2)
}

// A group of one answers reads by its own lease.
func TestOnlyVoterReadsByItsLease(t *testing.T) {
	g := newLeaseGroup(t, 1, 1, nil, nil)
	n := g.nodes[1]
	i := g.nodes[1].commit()
	require.Equal(t, i, n.readings[n.read()])
	n.stop()
	n.restart()
	g.until("it leads again", time.Second, func() bool { return g.stable(1) })
	require.GreaterOrEqual(t, g.now, leaseTime)
}

// Failover takes as long as without leases: a promise ends before its grantor could vote.
func TestLeasesDelayNoElection(t *testing.T) {
	fail := func(on bool) time.Duration {
		g := newLeaseGroup(t, 5, 5, []leases.NodeID{2, 3, 4}, nil)
		if !on {
			g.set = func(c *raft.Config) { c.Leases = nil }
			for id := range g.nodes {
				g.nodes[id].stop()
				g.nodes[id].restart()
			}
			g.until("a leader", time.Second, func() bool { return g.leader() != nil })
		}
		g.pass(100 * ms)
		l := g.leader()
		l.stop()
		return g.until("another leader", time.Second, func() bool { return g.leader() != nil })
	}
	require.LessOrEqual(t, fail(true), fail(false)+leaseTick)
}

// Half of the voters run without leases. They adopt no roster, so that a roster could not
// be superseded if a responder died: nobody is named, and writes go on.
func TestNobodyIsNamedWhileVotersHaveNoLeases(t *testing.T) {
	g := newLeaseGroup(t, 4, 4, nil, func(c *raft.Config) {
		c.Leases.Wanted = []leases.Want{{Nodes: []leases.NodeID{2, 3}}}
		if c.ID == 3 {
			c.Leases = nil
		}
	})
	g.pass(leaseTime)
	g.nodes[4].stop()
	g.set = func(c *raft.Config) { c.Leases = nil }
	g.nodes[4].restart()
	g.pass(leaseTime)
	require.False(t, g.stable(2))
	g.nodes[2].stop()
	i := g.write("x")
	g.until("it is committed", time.Second, func() bool { return g.nodes[1].commit() >= i })
}

// A node without leases ignores messages about them, and one with leases those that
// cannot be read.
func TestMessagesAboutLeasesAreIgnoredOrRefused(t *testing.T) {
	var some *pb.Message
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.sent = func(m *pb.Message) {
		if m.GetType() == raft.MsgLeases && m.GetTo() == 3 {
			some = m
		}
	}
	g.pass(50 * ms)
	require.NotNil(t, some)
	c := config(newStorage(t, 1, 2, 3))
	c.ID = 3
	plain := newNode(t, c)
	c.Coding = &raft.Coding{}
	coding := newNode(t, c)
	for _, rn := range []*raft.RawNode{plain, coding} {
		before := rn.BasicStatus()
		require.NoError(t, rn.Step(some))
		require.Equal(t, before, rn.BasicStatus())
		require.False(t, rn.HasReady())
		require.False(t, rn.LeaseStatus().On)
		require.ErrorIs(t, rn.SetResponders(nil), raft.ErrNoLeases)
	}
	n := g.nodes[3].rn
	for _, m := range []*pb.Message{
		{Context: nil},
		{Context: []byte("l")},
		{Context: []byte("lx")},
		{Context: []byte("n\x01")},
		{Context: []byte("d"), LogTerm: new(uint64(9))},
		{Context: some.GetContext(), Term: new(uint64(1))},
		{Context: some.GetContext()[:len(some.GetContext())-1]},
	} {
		m.Type, m.From, m.To = raft.MsgLeases.Enum(), new(uint64(2)), new(uint64(3))
		require.ErrorIs(t, n.Step(m), raft.ErrMalformedMessage, "%q", m.GetContext())
	}
	require.Equal(t, uint64(7), n.LeaseStatus().Reads.Refused+n.LeaseStatus().Counts.Refused)
	m := &pb.Message{Type: raft.MsgLeases.Enum(), From: new(uint64(2)), To: new(uint64(3)), Context: []byte("zebra")}
	require.NoError(t, n.Step(m), "of a later version")
}

func TestLeaseMistakesAreNamed(t *testing.T) {
	good := func() *raft.Config {
		c := config(newStorage(t, 1))
		c.PreVote, c.CheckQuorum, c.Clock = true, true, &leaseNode{g: &leaseGroup{}}
		c.Leases = &raft.Leases{Tick: 100 * ms}
		return c
	}
	require.NoError(t, good().Validate())
	for want, change := range map[string]func(c *raft.Config){
		"Leases need a Clock":  func(c *raft.Config) { c.Clock = nil },
		"Leases need PreVote":  func(c *raft.Config) { c.PreVote = false },
		"need CheckQuorum":     func(c *raft.Config) { c.CheckQuorum = false },
		"Leases.Tick is 0s":    func(c *raft.Config) { c.Leases.Tick = 0 },
		"Leases.Hold is -1ms":  func(c *raft.Config) { c.Leases.Hold = -ms },
		"Lease is -1ms":        func(c *raft.Config) { c.Leases.Lease = -ms },
		"Quarantine is 1ms":    func(c *raft.Config) { c.Leases.Quarantine = ms },
		"Heartbeat is 500ms":   func(c *raft.Config) { c.Leases.Heartbeat = 500 * ms },
		"DriftPPM is 10000000": func(c *raft.Config) { c.Leases.DriftPPM = 10_000_000 },
	} {
		c := good()
		change(c)
		require.ErrorContains(t, c.Validate(), want)
	}
}
