// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

var byQuorum = ReadOptions{Policy: QuorumRead{}}

func TestQuorumReadDoesWithoutTheLeader(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		write := c.propose(1, "a")
		c.run(2)
		c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		read := c.readWith(3, byQuorum)
		c.settle()
		require.NoError(t, c.result(read).Err)
		require.Equal(t, ServedByQuorum, c.result(read).Read.By)
		require.GreaterOrEqual(t, c.result(read).Index, c.result(write).Index)
		n := c.nodes[3].r.Status().Counters
		require.EqualValues(t, 1, n.ReadsByQuorum)
		require.Zero(t, n.ReadRounds)
	})
}

// Node 3 knows nothing of a write that the others have committed.
func TestQuorumReadWaitsForWhatAMajorityHas(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() != wire.ClassControl }
	write := c.propose(1, "a")
	c.run(1)
	require.NoError(t, c.result(write).Err)
	read := c.readWith(3, byQuorum)
	c.settle()
	require.NotContains(t, c.done, read)
	c.lose = func(wire.Message) bool { return false }
	c.run(4)
	require.NoError(t, c.result(read).Err)
	require.Equal(t, ServedByQuorum, c.result(read).Read.By)
	require.GreaterOrEqual(t, c.result(read).Index, c.result(write).Index)
}

// What is at the end of a log may never be committed. The leader is asked then.
func TestQuorumReadFallsBackToTheLeader(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.lose = func(m wire.Message) bool {
		return m.From == 1 && m.Class() == wire.ClassAppend || m.From == 2 && m.Kind() == wire.KindLogEnd // so that node 1 is needed
	}
	c.propose(1, "a")
	c.settle()
	read := c.readWith(3, byQuorum)
	c.settle()
	require.NotContains(t, c.done, read)
	c.run(6)
	require.NoError(t, c.result(read).Err)
	require.Equal(t, ServedByLeader, c.result(read).Read.By)
	require.EqualValues(t, 1, c.nodes[3].r.Status().Counters.QuorumFallbacks)
	require.True(t, c.nodes[3].r.reads.quorum.empty())
}

// The leader dies. Reads that may be answered by any voucher ask a majority after a quarter of an
// election timeout, and at once when nobody leads, long before there is another leader.
func TestReadsGoToAMajorityWhenTheLeaderIsDead(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		write := c.propose(1, "a")
		c.run(2)
		require.NoError(t, c.result(write).Err)
		r := c.nodes[2].r
		dead := func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		c.lose = dead
		read, leased := c.read(2, ReadIndex{}), c.read(2, LeaderLease{})
		c.run(1)
		require.NotContains(t, c.done, read, "the leader may be slow")
		c.run(r.cfg.ElectionTick/4 + 1)
		require.EqualValues(t, 1, r.state.Lead, "nobody has noticed")
		require.Equal(t, ServedByQuorum, c.result(read).Read.By)
		require.GreaterOrEqual(t, c.result(read).Index, c.result(write).Index)

		c.lose = func(m wire.Message) bool { return dead(m) || m.Kind() != wire.KindLogEnd }
		for range 10 * r.cfg.ElectionTick {
			if r.state.Lead == raft.None {
				break
			}
			c.run(1)
		}
		require.Zero(t, r.state.Lead)
		read = c.read(2, AtResponder{})
		c.settle()
		require.Equal(t, ServedByQuorum, c.result(read).Read.By)
		require.NotEqual(t, ServedByQuorum, c.done[leased].Read.By)
		require.GreaterOrEqual(t, r.Status().Counters.QuorumTurns, uint64(2))
	})
}

// Node 3 has applied nothing since the members were {1, 2, 3}, and the members are now {1, 4, 5}. Nodes 2 and 3 are a
// majority of the members that node 3 knows, and lack every entry committed since. The rule about the configuration
// finds the mistake, because both nodes have the change that removed node 2 in their logs.
func TestQuorumReadOfFormerMembersDoesNotEnd(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.add(4, nil)
	c.add(5, nil)
	c.run(2)
	n := c.nodes[3]
	n.held = true
	change := func(typ pb.ConfChangeType, id uint64) {
		c.calls++
		cc := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: typ.Enum(), NodeId: &id}}}
		c.nodes[1].r.ForceConfChange(c.calls, cc, c.now+50*tick)
		c.run(5)
		require.NoError(t, c.result(c.calls).Err)
	}
	change(pb.ConfChangeAddNode, 4)
	change(pb.ConfChangeAddNode, 5)
	change(pb.ConfChangeRemoveNode, 2)
	former := func(m wire.Message) bool { return m.From == 2 || m.From == 3 || m.To == 2 || m.To == 3 }
	c.lose = former
	change(pb.ConfChangeRemoveNode, 3)
	write := c.propose(1, "a")
	c.run(2)
	require.NoError(t, c.result(write).Err)
	require.Less(t, c.nodes[2].r.last, c.result(write).Index)
	require.Less(t, n.r.last, c.result(write).Index)

	c.lose = func(m wire.Message) bool { return (m.From != 2 || m.To != 3) && (m.From != 3 || m.To != 2) }
	read := c.readWith(3, byQuorum)
	c.settle()
	require.Equal(t, 1, len(n.r.reads.ready), "a majority of the former members has answered")
	n.held = false
	c.run(1)
	require.GreaterOrEqual(t, n.r.applied.at.index, c.nodes[2].r.last)
	require.EqualValues(t, 1, n.r.count.QuorumRestarts)
	c.run(30)
	require.ErrorIs(t, c.result(read).Err, ErrRefused)
}

// The same, where node 3 gets the entries that it lacks: it finds that its members have
// changed, and asks the new ones.
func TestQuorumReadThatMeetsAChangeAsksTheNewMembers(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.add(4, nil)
	c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() != wire.ClassControl }
	c.calls++
	cc := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}}}
	c.nodes[1].r.ForceConfChange(c.calls, cc, c.now+50*tick)
	c.run(3)
	require.NoError(t, c.result(c.calls).Err)
	read := c.readWith(3, byQuorum)
	c.settle()
	c.lose = func(wire.Message) bool { return false }
	c.run(4)
	require.NoError(t, c.result(read).Err)
	require.Equal(t, ServedByQuorum, c.result(read).Read.By)
	n := c.nodes[3].r.Status().Counters
	require.EqualValues(t, 1, n.QuorumRestarts)
	require.EqualValues(t, 2, n.QuorumRounds)
}

// An answer to a question of an earlier start of the node says nothing now.
func TestQuorumAnswersOfAnEarlierBootDoNotCount(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	n := c.nodes[3]
	var late []wire.Message
	c.lose = func(m wire.Message) bool {
		if m.Kind() == wire.KindLogEnd && m.To == 3 {
			late = append(late, m)
		}
		return m.Kind() == wire.KindLogEnd && m.To == 3
	}
	c.readWith(3, byQuorum)
	c.settle()
	require.Len(t, late, 2)
	c.start(n)
	c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
	write := c.propose(1, "a")
	c.run(1)
	require.NoError(t, c.result(write).Err)
	read := c.readWith(3, byQuorum)
	c.turn(n)
	for _, m := range late {
		require.NoError(t, n.r.Receive(m))
	}
	c.settle()
	require.NotContains(t, c.done, read)
}

func TestNodeWithoutALogAnswersNoQuorumRead(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	joiner := c.add(4, nil)
	require.NoError(t, joiner.r.Receive(wire.Message{Group: 7, From: 3, To: 4, Body: wire.LogEnd{Boot: 1, Number: 1}}))
	require.Empty(t, joiner.r.Flush(c.now).Sends)
	// A group with other first members under the same number does not answer either.
	require.NoError(t, c.nodes[2].r.Receive(wire.Message{Group: 7, From: 3, To: 2, Body: wire.LogEnd{Boot: 1, Number: 1, First: 99}}))
	for _, m := range c.nodes[2].r.Flush(c.now).Sends {
		require.NotEqual(t, wire.KindLogEnd, m.Kind())
	}
}

// A read that may lack entries is answered while those are on their way, and says how
// many it lacked.
func TestReadMayLackSomeEntries(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() != wire.ClassControl }
	for range 3 {
		c.propose(1, "a")
		c.run(1)
	}
	enough := c.readWith(3, ReadOptions{Policy: BoundedStaleness{MaxEntries: 3}})
	tooFew := c.readWith(3, ReadOptions{Policy: BoundedStaleness{MaxEntries: 2}})
	local := c.readWith(3, ReadOptions{Policy: Local{}})
	c.run(1)
	res := c.result(enough).Read
	require.NoError(t, c.result(enough).Err)
	require.Equal(t, ServedStale, res.By)
	require.EqualValues(t, 3, res.Lag)
	require.NotContains(t, c.done, tooFew)
	require.Equal(t, ServedStale, c.result(local).Read.By)
	require.EqualValues(t, -1, c.result(local).Read.Age, "nobody has vouched for this state")

	c.run(2)
	aged := c.readWith(3, ReadOptions{Policy: BoundedStaleness{Max: 10 * tick, MaxEntries: 3}})
	c.settle()
	require.NoError(t, c.result(aged).Err)
	require.Equal(t, 2*tick, c.result(aged).Read.Age)

	c.lose = func(wire.Message) bool { return false }
	c.run(4)
	require.NoError(t, c.result(tooFew).Err)
	require.Equal(t, ServedByLeader, c.result(tooFew).Read.By, "in the end it lacked nothing")
	require.Zero(t, c.result(tooFew).Read.Lag)
	for s := range endOfServedBy {
		require.NotContains(t, s.String(), "(")
	}
	require.Equal(t, "ServedBy(5)", endOfServedBy.String())
}

// Reads share a round that has not begun. The next one begins a moment after the last, so that a read does not wait for
// two rounds of members far away; but a read that may be a little stale waits for the one under way.
func TestReadRoundsBeginAMomentAfterEachOther(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.lose = func(m wire.Message) bool { return m.To == 3 }
	rounds := func() []uint64 {
		c.settle()
		n := c.nodes[3].r.Status().Counters
		return []uint64{n.ReadRounds, n.QuorumRounds}
	}
	read := func(policies ...ReadPolicy) {
		for _, p := range policies {
			c.readWith(3, ReadOptions{Policy: p})
		}
	}
	before := rounds()
	is := func(index, quorum uint64) {
		require.Equal(t, []uint64{before[0] + index, before[1] + quorum}, rounds())
	}
	read(ReadIndex{}, ReadIndex{}, QuorumRead{}, QuorumRead{})
	is(1, 1)
	c.now += eagerEvery - 1
	read(ReadIndex{}, QuorumRead{})
	is(1, 1)
	c.now++
	c.turn(c.nodes[3])
	is(2, 2)
	c.now += eagerEvery
	read(BoundedStaleness{Max: tick})
	is(2, 2)
	read(ReadIndex{})
	is(3, 2)
	c.lose = func(wire.Message) bool { return false }
	c.run(15)
	require.True(t, c.nodes[3].r.reads.plain.empty() && c.nodes[3].r.reads.quorum.empty())
}
