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
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// Schedules in which a change of the members meets coding, leases or both.

// lateGroup is a group in which a change waits for voter 4, which does not answer, and member 3
// dies with an entry under way; the entry is proposed when the change has waited for a while.
func lateGroup(t *testing.T, wait int) *group {
	g := newGroup(t, 3)
	g.elect(1)
	g.tick(2) // members report that they read coded entries
	g.propose(1, payload(1, 3000))
	g.fresh(4, true)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 4 }
	require.NoError(t, g.nodes[1].rn.ProposeConfChange(explicit(add(4))))
	g.tick(wait)
	g.stop(3)
	g.propose(1, payload(2, 3000))
	return g
}

// run ticks a group until one tick of the leader both raises an entry and refuses the waiting change, and
// carries out the effects of this tick in the given order. It returns the number of these effects, or 0 if
// there was no such tick. After each tick the leader's log must be in order.
func (g *group) run(order []int) (effects int) {
	for range 20 {
		err := raft.TickInOrder(g.nodes[1].rn, func(kinds []string) []int {
			is := make([]int, len(kinds))
			for i := range is {
				is[i] = i
			}
			if !slices.Contains(kinds, "append") || !slices.Contains(kinds, "refuse") {
				return is
			}
			if effects = len(kinds); order != nil {
				return order
			}
			return is
		})
		require.NoError(g.t, err)
		g.nodes[2].rn.Tick()
		g.settle()
		requireRow(g.t, g.nodes[1].storage)
		if effects > 0 {
			break
		}
	}
	return effects
}

func lastIndex(t testing.TB, s *raft.MemoryStorage) uint64 {
	last, err := s.LastIndex()
	require.NoError(t, err)
	return last
}

// acked has members acknowledge a leader's log, and the leader's host carry out the commits that follow. It returns the
// last index.
func acked(t testing.TB, rn *raft.RawNode, s *raft.MemoryStorage, members ...uint64) (last uint64) {
	last = lastIndex(t, s)
	for _, id := range members {
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgAppResp.Enum(), From: new(id), To: new(uint64(1)), Term: new(rn.BasicStatus().GetTerm()), Index: &last}))
	}
	drain(t, rn, s)
	return last
}

// requireRow requires that a log has each index once.
func requireRow(t testing.TB, s *raft.MemoryStorage) {
	first, err := s.FirstIndex()
	require.NoError(t, err)
	last := lastIndex(t, s)
	ents, err := s.Entries(first, last+1, 1<<30)
	require.NoError(t, err)
	for i, e := range ents {
		require.Equal(t, first+uint64(i), e.GetIndex())
	}
}

// permutations returns all orders of n things.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// TestEffectsMayBeCarriedOutInAnyOrder: a carrier's place is where the log appends it, whatever
// is appended first. If coding guessed the index, the leader's log would have two entries of one
// index, and units would count that no member has.
func TestEffectsMayBeCarriedOutInAnyOrder(t *testing.T) {
	tried := 0
	for wait := range 14 {
		n := lateGroup(t, wait).run(nil)
		if n == 0 {
			continue
		}
		require.Less(t, n, 7)
		for _, order := range permutations(n) {
			g := lateGroup(t, wait)
			g.run(order)
			g.drop = nil
			g.tick(5)
			g.requireApplied([][]byte{payload(1, 3000), payload(2, 3000)}, 1, 2)
			tried++
		}
	}
	require.Greater(t, tried, 20)
}

// TestChangeWaitsForOneThatIsReportedOnly: the leader's host has reported that 4 is a member, and
// not put that into force. That 3 becomes a learner must wait: its check would look at the voters
// of now. Where 4 is a voter, a majority of {1 2 4} could not decode what is committed.
func TestChangeWaitsForOneThatIsReportedOnly(t *testing.T) {
	s := newStorage(t, 1, 2, 3)
	c := config(s)
	c.Coding = &raft.Coding{Threshold: 64}
	rn := newNode(t, c)
	lead(t, rn, s, 2, 3)
	acked(t, rn, s, 2)
	require.NoError(t, rn.ProposeConfChange(explicit(learn(4))))
	drain(t, rn, s)
	acked(t, rn, s, 2)
	require.Equal(t, rn.BasicStatus().Applied, rn.BasicStatus().GetCommit())
	before := lastIndex(t, s)
	require.NoError(t, rn.ProposeConfChange(explicit(learn(3))))
	drain(t, rn, s)
	require.Equal(t, before, lastIndex(t, s), "the second change is in the log")
	rn.ApplyConfChange(explicit(learn(4)))
	rn.Tick()
	drain(t, rn, s)
	require.Equal(t, before+1, lastIndex(t, s), "the second change waits still")
}

// TestChangesHandedAgain: after a restart a host that does not say what its state holds is handed
// its log again, and as etcd does calls for no change that the state holds, be it ahead of the
// commit index that survived. A host that says what its state holds must call.
func TestChangesHandedAgain(t *testing.T) {
	for name, host := range map[string]struct {
		committed, applied uint64
		waits              bool
	}{
		"all is committed":            {committed: 3},
		"the last is not committed":   {committed: 2},
		"the host says what it holds": {committed: 3, applied: 2, waits: true},
	} {
		s := newStorage(t, 1, 2, 3, 4) // of the state; the log leads there
		for i, change := range []*pb.ConfChangeSingle{learn(4), add(4)} {
			data, err := proto.Marshal(explicit(change))
			require.NoError(t, err)
			require.NoError(t, s.Append([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(1)), Index: new(uint64(i + 2)), Data: data}}))
		}
		require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(host.committed)}))
		c := config(s)
		c.Applied, c.Coding = host.applied, &raft.Coding{}
		rn := newNode(t, c)
		drain(t, rn, s)
		lead(t, rn, s, 2, 3, 4)
		acked(t, rn, s, 2, 3, 4)
		before := lastIndex(t, s)
		require.Equal(t, before, rn.BasicStatus().Applied, name)
		require.NoError(t, rn.ProposeConfChange(explicit(learn(5))))
		drain(t, rn, s)
		require.Equal(t, host.waits, lastIndex(t, s) == before, name)
	}
}

// TestLateCallEndsNoOtherChange: a change that changes no voter was in the log at a restart, and its report
// ended it, as the state may hold it. But the host is late: it calls for that change when it was handed the
// next one. The next one is not in force yet, so a third one waits.
func TestLateCallEndsNoOtherChange(t *testing.T) {
	s := newStorage(t, 1, 2, 3)
	update := explicit(&pb.ConfChangeSingle{Type: pb.ConfChangeUpdateNode.Enum(), NodeId: new(uint64(3))})
	data, err := proto.Marshal(update)
	require.NoError(t, err)
	require.NoError(t, s.Append([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(1)), Index: new(uint64(2)), Data: data}}))
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
	c := config(s)
	c.Coding = &raft.Coding{}
	rn := newNode(t, c)
	drain(t, rn, s)
	lead(t, rn, s, 2, 3)
	acked(t, rn, s, 2)
	require.NoError(t, rn.ProposeConfChange(explicit(learn(4))))
	drain(t, rn, s)
	before := acked(t, rn, s, 2)
	rn.ApplyConfChange(update)
	require.NoError(t, rn.ProposeConfChange(explicit(learn(5))))
	rn.Tick()
	drain(t, rn, s)
	require.Equal(t, before, lastIndex(t, s), "the third change is in the log")
	rn.ApplyConfChange(explicit(learn(4)))
	rn.Tick()
	drain(t, rn, s)
	require.Equal(t, before+1, lastIndex(t, s), "the third change waits still")
}

// TestLeaderThatLacksAPayloadIsHandedAChangeAgain: node 2 starts again, and its host, which does not say what its state
// holds, has lost the state. Node 2 leads although a change in its log is not in force, because it lacks a payload below
// the change. Then it is handed the change as a leader, and reports it first: the change is not in force yet, and the
// next one waits.
func TestLeaderThatLacksAPayloadIsHandedAChangeAgain(t *testing.T) {
	g := newGroup(t, 3)
	g.policy = func() ecraft.Policy { return ecraft.Fixed(2) }
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	g.tick(2)
	g.propose(1, payload(1, 3000))
	g.change(1, learn(4))
	g.tick(2)
	n := g.nodes[2]
	at := n.index
	g.stop(1, 2)
	n.index, n.applied, g.again = 1, nil, true
	g.start(2)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 2 && m.GetType() == raft.MsgUnits }
	var late []*pb.ConfChangeV2
	g.late = func(cc *pb.ConfChangeV2) bool { late = append(late, cc); return true }
	g.tick(20)
	g.elect(2)
	require.Empty(t, late)
	g.drop = nil
	g.tick(10)
	require.Len(t, late, 1)
	require.GreaterOrEqual(t, n.rn.BasicStatus().Applied, at)
	before, err := n.storage.LastIndex()
	require.NoError(t, err)
	g.change(2, learn(5))
	g.tick(2)
	last, err := n.storage.LastIndex()
	require.NoError(t, err)
	require.Equal(t, before, last, "the next change is in the log")
	g.late = nil
	n.conf = n.rn.ApplyConfChange(late[0])
	g.tick(2)
	require.Equal(t, []uint64{4, 5}, n.conf.GetLearners())
}

// tornGroup is a group {1 2 3} in which the logs of 1, 2 and 4 have two changes that were committed:
// 4 joins, then 5. The commit index is lost. Node 1 leads, and its host does not apply.
func tornGroup(t *testing.T) *leaseGroup {
	g := &leaseGroup{t: t, nodes: map[uint64]*leaseNode{}, cut: map[[2]uint64]bool{}, voters: []uint64{1, 2, 3}}
	g.set = func(c *raft.Config) { c.Coding = &raft.Coding{} }
	cs := &pb.ConfState{Voters: g.voters}
	for id := uint64(1); id <= 5; id++ {
		n := g.add(id, cs)
		if id == 3 || id == 5 {
			continue
		}
		for i, change := range []*pb.ConfChangeSingle{add(4), add(5)} {
			data, err := proto.Marshal(explicit(change))
			require.NoError(t, err)
			require.NoError(t, n.disk.Append([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(1)), Index: new(uint64(2 + i)), Data: data}}))
		}
		require.NoError(t, n.disk.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
		n.start()
	}
	g.nodes[1].slow = true
	g.pass(2 * leaseTime) // quarantine
	require.NoError(t, g.nodes[1].rn.Campaign())
	g.nodes[1].work()
	return g
}

// TestLeadersLeaseNeedsEverySetThatCounts: node 1 has the lease of 2, a majority of the members in
// force. But 3, 4 and 5 are a majority of the newest configuration, and may have elected another.
func TestLeadersLeaseNeedsEverySetThatCounts(t *testing.T) {
	g := tornGroup(t)
	n := g.nodes[1]
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 1 && m.GetFrom() > 2 && m.GetType() == raft.MsgLeases }
	g.until("node 1 commits", 2*time.Second, func() bool { return n.rn.BasicStatus().RaftState == raft.StateLeader && n.commit() > 3 })
	require.Equal(t, []uint64{1, 2, 3}, n.conf.GetVoters())
	g.pass(leaseTime) // what the others granted before has ended
	for range 20 {
		g.pass(leaseTime / 10)
		require.False(t, g.stable(1), "by the lease of node 2")
	}
	g.drop = nil
	g.until("members to come grant, too", time.Second, func() bool { return g.stable(1) })
}

// TestEndOfAJointConfigurationIsFoundInTheLog: an earlier leader appended the end of the joint
// configuration, and this leader's host has reported it as applied without putting it into force.
// At a second end every member would panic.
func TestEndOfAJointConfigurationIsFoundInTheLog(t *testing.T) {
	for _, leased := range []bool{false, true} {
		s := raft.NewMemoryStorage()
		require.NoError(t, s.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2}, VotersOutgoing: []uint64{1, 2, 3}, AutoLeave: new(true)},
		}}))
		end := &pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(1)), Index: new(uint64(2))}
		require.NoError(t, s.Append([]*pb.Entry{end}))
		require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
		c := config(s)
		c.Coding = &raft.Coding{}
		clock := aClock(0)
		if leased {
			c.Coding, c.PreVote, c.CheckQuorum, c.Clock = nil, true, true, &clock
			c.Leases = &raft.Leases{Tick: 100 * time.Millisecond, Boot: 1}
		}
		rn := newNode(t, c)
		clock = aClock(time.Minute)
		joinLead(t, rn, s)
		for range 3 {
			acked(t, rn, s, 2)
			rn.Tick()
			drain(t, rn, s)
		}
		last := lastIndex(t, s)
		ents, err := s.Entries(2, last+1, 1<<30)
		require.NoError(t, err)
		ends := 0
		for _, e := range ents {
			if e.GetType() == pb.EntryConfChangeV2 {
				ends++
			}
		}
		require.Equal(t, 1, ends, "leases %t", leased)
		rn.ApplyConfChange(&pb.ConfChangeV2{})
		require.Empty(t, rn.Status().Config.Voters[1])
	}
}

// TestLateChangeIsNoRefusedOne: node 2 is removed from {1 2}, and the leader's host puts that into
// force long after it has reported it. Node 2 is not named again meanwhile: a majority of {1 2}
// could not supersede that roster, and nothing would be committed.
func TestLateChangeIsNoRefusedOne(t *testing.T) {
	g := newLeaseGroup(t, 2, 2, []leases.NodeID{2}, nil)
	g.pass(100 * ms)
	l := g.nodes[1]
	l.late, l.lateBy = true, 15*leasePatience
	g.change(removal(2))
	g.until("nobody is named", time.Second, func() bool { return len(l.rn.LeaseStatus().Roster.Spans) == 0 })
	g.until("the change is in force", 20*leasePatience, func() bool {
		require.Empty(t, l.rn.LeaseStatus().Roster.Spans)
		return len(l.conf.GetVoters()) == 1
	})
	i := g.write("x")
	g.until("a write is committed", time.Second, func() bool { return l.commit() >= i })
}

// TestSettingsThatTicksCannotKeepAreRefused: silence is noticed, and leases are renewed, at ticks.
func TestSettingsThatTicksCannotKeepAreRefused(t *testing.T) {
	for text, l := range map[string]raft.Leases{
		"Leases.Fail is 200ms; it must be 0 (meaning 500 ms, or 4 heartbeats) or at least 4 ticks, 400ms": {Tick: 100 * time.Millisecond, Fail: 200 * time.Millisecond},
		"Leases.Heartbeat is 50ms; it must be 0 (meaning HeartbeatTick ticks) or at least Tick, 100ms":    {Tick: 100 * time.Millisecond, Heartbeat: 50 * time.Millisecond},
	} {
		c := config(newStorage(t, 1))
		c.PreVote, c.CheckQuorum, c.Clock, c.Leases = true, true, new(aClock), &l
		require.ErrorContains(t, c.Validate(), text)
	}
}

// aClock stands where a test sets it.
type aClock time.Duration

func (c *aClock) Now() time.Duration { return time.Duration(*c) }

// joinLead makes node 1 leader with the votes of 2 and 3, whatever comes first: a pre-vote, or a
// recovery.
func joinLead(t *testing.T, rn *raft.RawNode, s *raft.MemoryStorage) {
	require.NoError(t, rn.Campaign())
	for range 3 {
		for _, m := range drain(t, rn, s) {
			answer := map[pb.MessageType]pb.MessageType{pb.MsgPreVote: pb.MsgPreVoteResp, pb.MsgVote: pb.MsgVoteResp}[m.GetType()]
			if answer != 0 {
				require.NoError(t, rn.Step(&pb.Message{Type: answer.Enum(), From: new(m.GetTo()), To: new(uint64(1)), Term: new(m.GetTerm())}))
			}
		}
	}
	drain(t, rn, s)
	require.Equal(t, raft.StateLeader, rn.BasicStatus().RaftState, fmt.Sprint(rn.BasicStatus()))
}

// TestTornWinnerAmongMembersWithoutCoding: node 1 alone codes. It loses power, and with that its commit index, behind
// two changes of which the other member that is alive has one. So only node 1 can win, with two changes not in force;
// and the other does not answer the question for its commit index.
func TestTornWinnerAmongMembersWithoutCoding(t *testing.T) {
	g := newGroup(t, 3)
	g.startPlain(2)
	g.startPlain(3)
	g.elect(3)
	before := g.nodes[1].index
	g.change(3, learn(4))
	g.tick(2)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 2 && m.GetType() == pb.MsgApp }
	g.change(3, learn(5))
	g.drop = nil
	g.stop(3)
	n := g.nodes[1]
	hs, _, err := n.storage.InitialState()
	require.NoError(t, err)
	hs.Commit = &before
	require.NoError(t, n.storage.SetHardState(hs))
	n.index = 1
	g.start(1)
	g.tick(100)
	require.NotZero(t, n.rn.BasicStatus().Lead)
	g.propose(n.rn.BasicStatus().Lead, payload(1, 10))
	g.requireApplied([][]byte{payload(1, 10)}, 1, 2)
}
