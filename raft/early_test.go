// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// earlyGroup is a group of three, led by node 1, that applies so many bytes early.
func earlyGroup(t *testing.T, size uint64) *leaseGroup {
	g := newLeaseGroup(t, 3, 3, nil, func(c *raft.Config) { c.MaxEarlyApplySize, c.MaxCommittedSizePerReady = size, 1<<20 })
	g.pass(lateTimeout) // nothing is under way
	return g
}

// entrySize is the size of entries in a log, by their data.
func entrySize(data string, term, index uint64) uint64 {
	return uint64(proto.Size(&pb.Entry{Term: &term, Index: &index, Data: []byte(data), Type: pb.EntryNormal.Enum()}))
}

// The disk of a leader hangs. Its host applies what the other two have stored, and the leader vouches
// for nothing that it has not stored. By default the host waits for the disk.
func TestLeaderAppliesWhatAMajorityHasStoredBeforeItsOwnDiskHas(t *testing.T) {
	for _, size := range []uint64{0, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			g := earlyGroup(t, size)
			n := g.nodes[1]
			before := n.applied
			n.stuck = true
			index := g.write("x")
			g.until("commit", time.Second, func() bool { return n.commit() >= index })
			g.pass(lateTimeout)
			if size == 0 {
				require.Equal(t, before, n.applied)
			} else {
				require.Equal(t, index, n.applied)
			}
			n.rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
				require.Equal(t, id != 1, pr.Match == index, "node %d: %v", id, pr)
			})
			n.goOn()
			g.until("apply", time.Second, func() bool { return n.applied == index })
		})
	}
}

// A follower learns from its leader what is committed, and applies early, too. It acknowledges nothing.
func TestFollowerAppliesEarly(t *testing.T) {
	g := earlyGroup(t, 1<<20)
	n := g.nodes[3]
	n.stuck = true
	g.sent = func(m *pb.Message) {
		require.False(t, m.GetFrom() == 3 && m.GetType() == pb.MsgAppResp, "%v", m)
	}
	index := g.write("x")
	g.until("apply", time.Second, func() bool { return n.applied == index })
}

// Early entries are at most as many bytes as the bound says, and there is room again as the disk
// gets on. An entry that alone is larger waits until it is written, and so do those behind it.
func TestEarlyAppliesKeepTheirBound(t *testing.T) {
	g := earlyGroup(t, 0)
	last := g.write("x")
	one := entrySize("x", g.nodes[1].term(), last+1)

	g = earlyGroup(t, 3*one)
	n := g.nodes[1]
	before := n.applied
	n.stuck = true
	for range 5 {
		last = g.write("x")
	}
	g.until("commit", time.Second, func() bool { return n.commit() >= last })
	g.pass(lateTimeout)
	require.Equal(t, before+3, n.applied)
	first := n.waiting[:1]
	n.waiting = n.waiting[1:]
	for _, m := range first {
		require.NoError(t, n.disk.Append(m.GetEntries()))
		for _, r := range m.GetResponses() {
			n.answer(r)
		}
	}
	n.work()
	require.Equal(t, before+4, n.applied, "the disk has written one")
	n.goOn()
	require.Equal(t, last, n.applied)

	n.stuck = true
	g.write(strings.Repeat("x", int(3*one)))
	last = g.write("x")
	g.until("commit", time.Second, func() bool { return n.commit() >= last })
	g.pass(lateTimeout)
	require.Equal(t, last-2, n.applied)
	n.goOn()
	require.Equal(t, last, n.applied)
}

// A leader has applied entries, and its power fails before it has stored them. If its state survives,
// a node does not start with the log, which is behind; it does behind a snapshot in the place of the
// log, and then votes for nobody who lacks the entries (rule E3).
func TestLogMustReachUpToTheState(t *testing.T) {
	g := earlyGroup(t, 1<<20)
	n := g.nodes[1]
	n.stuck = true
	index := g.write("x")
	g.until("apply", time.Second, func() bool { return n.applied == index })
	term := n.term()
	n.up = false

	c := config(n.disk)
	c.ID, c.AsyncStorageWrites, c.MaxEarlyApplySize, c.Applied = 1, true, 1<<20, index
	_, err := raft.NewRawNode(c)
	require.ErrorContains(t, err, "Config.Applied")

	require.NoError(t, n.disk.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term, ConfState: n.conf}}))
	hs, _, err := n.disk.InitialState()
	require.NoError(t, err)
	require.NoError(t, n.disk.SetHardState(&pb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: &index}))
	n.restart()
	answers := map[uint64]bool{}
	g.drop = func(m *pb.Message) bool {
		if m.GetFrom() == 1 && m.GetType() == pb.MsgVoteResp {
			answers[m.GetTo()] = !m.GetReject()
		}
		return true
	}
	g.pass(2 * leaseTime) // promises of before the restart
	for _, candidate := range []struct{ id, last uint64 }{{2, index - 1}, {3, index}} {
		_ = n.rn.Step(&pb.Message{
			Type: pb.MsgVote.Enum(), From: &candidate.id, To: new(uint64(1)), Term: new(n.term() + 1), Index: &candidate.last, LogTerm: &term,
			Context: []byte("CampaignTransfer"),
		})
		n.work()
		g.pass(5 * time.Millisecond)
	}
	require.Equal(t, map[uint64]bool{2: false, 3: true}, answers)
}

// A change of the members takes force at a leader whose disk hangs, and later entries are committed
// by the new members.
func TestMembersChangeEarly(t *testing.T) {
	g := newLeaseGroup(t, 4, 3, nil, func(c *raft.Config) { c.MaxEarlyApplySize = 1 << 20 })
	g.pass(lateTimeout)
	n := g.nodes[1]
	n.stuck = true
	require.NoError(t, n.rn.ProposeConfChange(&pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}))
	n.work()
	g.until("the change", time.Second, func() bool { return len(n.conf.GetVoters()) == 4 })
	g.isolate(3)
	index := g.write("x")
	g.pass(lateTimeout)
	require.Less(t, n.commit(), index, "two of four")
	n.goOn()
	g.until("three of four", time.Second, func() bool { return n.commit() >= index })
}

// A follower has applied early what its disk has not taken, and gets a snapshot in the place of all. What
// comes behind the snapshot is applied early, too.
func TestSnapshotTakesThePlaceOfEarlyEntries(t *testing.T) {
	g := earlyGroup(t, 1<<20)
	lead, n := g.nodes[1], g.nodes[3]
	n.stuck = true
	index := g.write("x")
	g.until("apply", time.Second, func() bool { return n.applied == index })
	g.isolate(3)
	last := uint64(0)
	for range 3 {
		last = g.write("y")
		g.until("apply", time.Second, func() bool { return lead.applied == last })
	}
	term, err := lead.disk.Term(last)
	require.NoError(t, err)
	g.mend()
	require.NoError(t, n.rn.Step(&pb.Message{
		Type: pb.MsgSnap.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: new(lead.term()),
		Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &last, Term: &term, ConfState: lead.conf}},
	}))
	require.Equal(t, last, n.commit())
	g.pass(lateTimeout)
	n.goOn()
	require.Equal(t, last, n.applied)
	n.stuck = true
	last = g.write("z")
	g.until("apply", time.Second, func() bool { return n.applied == last })
	n.goOn()
}

// Without asynchronous writes there is nothing to bound.
func TestEarlyAppliesNeedAsyncStorageWrites(t *testing.T) {
	c := config(raft.NewMemoryStorage())
	c.MaxEarlyApplySize = 7
	require.ErrorContains(t, c.Validate(), "MaxEarlyApplySize is 7")
	c.AsyncStorageWrites = true
	require.NoError(t, c.Validate())
}
