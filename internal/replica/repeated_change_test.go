// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// repeatable are changes that have an effect when they are made once more.
var repeatable = map[string][]*pb.ConfChangeSingle{
	"simple": {single(pb.ConfChangeAddLearnerNode, 6)},
	"joint":  {single(pb.ConfChangeAddLearnerNode, 6), single(pb.ConfChangeAddLearnerNode, 7)},
}

// bothKinds runs a test with each library, and a simple and a joint change.
func bothKinds(t *testing.T, f func(t *testing.T, core NewCore, changes []*pb.ConfChangeSingle)) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for kind, changes := range repeatable {
			t.Run(kind, func(t *testing.T) { f(t, core, changes) })
		}
	})
}

// deafOrigin has node 5 propose a change that the leader makes, and hear neither of
// the verdict nor of the log. It returns the change as it stands in the log.
func (c *cluster) deafOrigin(changes []*pb.ConfChangeSingle) *pb.ConfChangeV2 {
	c.t.Helper()
	c.lose = func(m wire.Message) bool {
		return m.To == 5 && m.Class() != wire.ClassControl || m.To == 5 && m.Kind() == wire.KindVerdict
	}
	c.calls++
	c.nodes[5].r.ProposeConfChange(c.calls, &pb.ConfChangeV2{Changes: changes}, c.now+100*tick)
	c.settle()
	c.run(5)
	made := c.changesInLog(1)
	require.Len(c.t, made, 1)
	require.Contains(c.t, c.nodes[1].r.Status().Members.GetLearners(), uint64(6))
	return made[0]
}

// changesInLog returns the changes with an id in the log of a node.
func (c *cluster) changesInLog(id uint64) (changes []*pb.ConfChangeV2) {
	c.t.Helper()
	log := c.nodes[id].log
	first, err := log.FirstIndex()
	require.NoError(c.t, err)
	last, err := log.LastIndex()
	require.NoError(c.t, err)
	ents, err := log.Entries(first, last+1, 1<<30)
	require.NoError(c.t, err)
	for _, e := range ents {
		if cc := (&pb.ConfChangeV2{}); e.GetType() == pb.EntryConfChangeV2 && len(e.GetData()) > 0 {
			require.NoError(c.t, proto.Unmarshal(e.GetData(), cc))
			changes = append(changes, cc)
		}
	}
	return changes
}

// repeatChange has a change stand in the log twice, as leaders of earlier versions let
// it. Node 5 then restores a snapshot from behind the second while node 3 becomes the
// leader, so that its core has no use for it. It returns node 5, and the state of
// another node from between the two.
func (c *cluster) repeatChange(changes []*pb.ConfChangeSingle) (behind *node, between SnapshotMeta) {
	t := c.t
	c.nodes[1].cfg.RetainEntries = 4 // it alone has to send a snapshot
	c.start(c.nodes[1])
	c.elect(1)
	c.run(25)
	made := c.deafOrigin(changes)
	require.NoError(t, c.change(2, single(pb.ConfChangeRemoveNode, 6)).Err)
	for i := range 20 {
		if i == 10 {
			between = SnapshotMeta{Index: c.nodes[2].sm.index, Host: c.nodes[2].sm.host}
			require.NoError(t, c.nodes[1].r.core.ProposeConfChange(made))
			c.nodes[1].r.dirty = true
		}
		c.propose(2, fmt.Sprint(i))
		c.settle()
	}
	require.GreaterOrEqual(t, len(c.changesInLog(2)), 3)

	behind, c.slow = c.nodes[5], 4
	c.lose = func(m wire.Message) bool { return m.To == 5 && m.Kind() == wire.KindVerdict }
	for range 20 {
		if len(c.streams) == 0 {
			c.run(1)
		}
	}
	require.Len(t, c.streams, 1, "node 5 is sent a snapshot")
	c.calls++
	c.nodes[1].r.TransferLeader(c.calls, 3, c.now+100*tick)
	c.lose = func(m wire.Message) bool { return m.To == 5 && m.Class() != wire.ClassControl }
	c.run(5)
	require.True(t, c.nodes[3].r.leads())
	require.EqualValues(t, 1, behind.r.count.SnapshotsInstalled)
	require.Less(t, behind.r.emitted.index, between.Index, "the core has no use for it")
	require.Less(t, between.Index, behind.r.host.at.index)
	return behind, between
}

// sameMembers lets node 5 take the log, and compares what its core makes of it.
func (c *cluster) sameMembers() {
	c.lose = func(wire.Message) bool { return false }
	c.run(20)
	require.Equal(c.t, c.nodes[3].r.emitted, c.nodes[5].r.emitted)
	want, _ := c.nodes[3].r.core.Members()
	got, _ := c.nodes[5].r.core.Members()
	require.Equal(c.t, want.String(), got.String())
	require.NoError(c.t, c.change(2, single(pb.ConfChangeAddLearnerNode, 8)).Err)
	c.run(10)
	c.agree()
}

// A node whose state is ahead of its core puts a change that stands in the log twice
// into force once, as others do.
func TestRepeatedChangeBehindASnapshot(t *testing.T) {
	bothKinds(t, func(t *testing.T, core NewCore, changes []*pb.ConfChangeSingle) {
		c := newCluster(t, core, 1, 2, 3, 4, 5)
		c.repeatChange(changes)
		c.sameMembers()
	})
}

// The same where the core takes another snapshot meanwhile, from between the two.
func TestRepeatedChangeBetweenSnapshots(t *testing.T) {
	bothKinds(t, func(t *testing.T, core NewCore, changes []*pb.ConfChangeSingle) {
		c := newCluster(t, core, 1, 2, 3, 4, 5)
		behind, between := c.repeatChange(changes)
		term := behind.r.state.Term
		header, err := SnapshotHeader(SnapshotSend{To: 5, Message: &pb.Message{
			Type: pb.MsgSnap.Enum(), From: new(uint64(3)), To: new(uint64(5)), Term: &term,
		}}, between)
		require.NoError(t, err)
		require.ErrorIs(t, behind.r.OfferSnapshot(3, header), ErrNotNeeded)
		c.settle()
		require.Equal(t, between.Index, behind.r.last, "the core has a use for it")
		c.sameMembers()
	})
}

// An origin that neither hears of a verdict nor of the log asks again. The leader has
// made the change, so it does not append it a second time.
func TestLeaderRefusesWhatItHasApplied(t *testing.T) {
	bothKinds(t, func(t *testing.T, core NewCore, changes []*pb.ConfChangeSingle) {
		c := newCluster(t, core, 1, 2, 3, 4, 5)
		c.elect(1)
		c.run(25)
		c.deafOrigin(changes)
		call := c.calls
		c.run(40)
		require.NotZero(t, c.nodes[5].r.count.Resent)
		require.Len(t, c.changesInLog(1), 1)
		c.lose = func(wire.Message) bool { return false }
		c.run(20)
		require.NoError(t, c.result(call).Err)
		c.agree()
	})
}
