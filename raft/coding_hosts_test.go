// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// warnings is a logger that keeps the warnings.
type warnings struct {
	silent.Logger
	said []string
}

func (w *warnings) Warningf(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

func (w *warnings) count(part string) (n int) {
	for _, s := range w.said {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// hastyHost drives a node, the only voter, and calls Advance before ApplyConfChange.
// It returns the changes of the log.
func hastyHost(t *testing.T, coding *raft.Coding) (changes int, w *warnings) {
	w = &warnings{}
	s := newStorage(t, 1)
	c := config(s)
	c.Coding, c.Logger = coding, w
	rn := newNode(t, c)
	require.NoError(t, rn.Campaign())
	propose := func() {
		require.NoError(t, rn.ProposeConfChange(&pb.ConfChangeV2{
			Changes:    []*pb.ConfChangeSingle{learn(2), learn(3)},
			Transition: pb.ConfChangeTransitionJointImplicit.Enum(),
		}))
	}
	proposed := false
	for i := 0; rn.HasReady() && i < 50; i++ {
		rd := rn.Ready()
		require.NoError(t, s.Append(rd.Entries))
		rn.Advance(rd)
		for _, e := range rd.CommittedEntries {
			if e.GetType() != pb.EntryNormal {
				changes++
				if changes == 3 {
					return changes, w // at which each node would panic
				}
				var cc pb.ConfChangeV2
				require.NoError(t, proto.Unmarshal(e.GetData(), &cc))
				rn.ApplyConfChange(&cc)
			}
		}
		if rn.BasicStatus().RaftState == raft.StateLeader && !proposed {
			proposed = true
			propose()
		}
		if proposed && changes == 1 && !rn.HasReady() {
			require.NoError(t, rn.Propose(nil)) // what is applied next brings the leave along
		}
	}
	return changes, w
}

// TestJointConfigurationIsLeftOnceByAHastyHost: a host that says that the end of a joint
// configuration is applied before it has put it into force gets no second one with coding. At a
// second one each node panics: without coding a warning says so, and the log is upstream's.
func TestJointConfigurationIsLeftOnceByAHastyHost(t *testing.T) {
	changes, w := hastyHost(t, &raft.Coding{})
	require.Equal(t, 2, changes)
	require.Zero(t, w.count("before ApplyConfChange"))
	changes, w = hastyHost(t, nil)
	require.Equal(t, 3, changes)
	require.Equal(t, 1, w.count("before ApplyConfChange"))
}

// TestSnapshotWaitsForAChangeThatIsHandedOut: with coding a snapshot that comes between
// a change of members and ApplyConfChange is refused, and taken later: the change would
// come on top of the snapshot's members.
func TestSnapshotWaitsForAChangeThatIsHandedOut(t *testing.T) {
	w := &warnings{}
	s := newStorage(t, 1, 2, 3)
	c := config(s)
	c.Coding, c.Logger = &raft.Coding{}, w
	rn := newNode(t, c)
	cc := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{remove(3)}}
	data, err := proto.Marshal(cc)
	require.NoError(t, err)
	step := func(m *pb.Message) {
		m.From, m.To, m.Term = new(uint64(2)), new(uint64(1)), new(uint64(2))
		require.NoError(t, rn.Step(m))
	}
	step(&pb.Message{Type: pb.MsgApp.Enum(), LogTerm: new(uint64(1)), Index: new(uint64(1)), Commit: new(uint64(2)), Entries: []*pb.Entry{
		{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(2)), Index: new(uint64(2)), Data: data}}})
	rd := rn.Ready()
	require.Len(t, rd.CommittedEntries, 1)
	snap := func() {
		step(&pb.Message{Type: pb.MsgSnap.Enum(), Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(9)), Term: new(uint64(2)), ConfState: &pb.ConfState{Voters: []uint64{1, 2}}}}})
	}
	snap()
	require.Equal(t, 1, w.count("refuses snapshot"))
	require.NoError(t, s.Append(rd.Entries))
	require.Equal(t, []uint64{1, 2}, rn.ApplyConfChange(cc).GetVoters())
	rn.Advance(rd)
	for rn.HasReady() {
		rd := rn.Ready()
		require.Nil(t, rd.Snapshot)
		rn.Advance(rd)
	}
	snap()
	require.Equal(t, uint64(9), rn.Ready().Snapshot.GetMetadata().GetIndex())
	require.Equal(t, 1, w.count("refuses snapshot"))
}

// TestLeaderWarnsOfACutThatWasNotDurable: a member that said that it has released its log
// up to an index, and after a restart begins before it, is named once. A late message is
// no such thing.
func TestLeaderWarnsOfACutThatWasNotDurable(t *testing.T) {
	w := &warnings{}
	g := newGroup(t, 3)
	g.logger = w
	g.start(1)
	g.elect(1)
	for i := range 5 {
		g.propose(1, payload(i, 1000))
	}
	g.tick(3)
	n := g.nodes[2]
	stored := func() []*pb.Entry {
		first, err := n.storage.FirstIndex()
		require.NoError(t, err)
		last, err := n.storage.LastIndex()
		require.NoError(t, err)
		ents, err := n.storage.Entries(first, last+1, 1<<40)
		require.NoError(t, err)
		return ents
	}
	var late []*pb.Message
	g.drop = func(m *pb.Message) bool {
		if m.GetFrom() == 2 && m.GetType() == pb.MsgAppResp {
			late = append(late, m)
		}
		return false
	}
	g.propose(1, payload(5, 1000))
	g.drop = nil
	ents := stored()
	g.compact(2, n.index)
	g.propose(1, payload(6, 1000))
	g.tick(30)
	for _, m := range late {
		require.NoError(t, g.nodes[1].rn.Step(m))
	}
	g.tick(1)
	g.propose(1, payload(7, 1000))
	g.tick(30)
	require.Zero(t, w.count("said"))

	old := newStorage(t, 1, 2, 3) // the log with what was cut
	require.NoError(t, old.Append(ents))
	require.NoError(t, old.Append(stored()))
	hs, _, err := n.storage.InitialState()
	require.NoError(t, err)
	require.NoError(t, old.SetHardState(hs))
	n.storage = old
	g.start(2)
	for i := range 40 {
		g.tick(1)
		g.propose(1, payload(8+i, 1000))
	}
	require.Equal(t, 1, w.count("member 2 has released its log up to 1, and said"), "%q", w.said)
}
