// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// The leader that coded what is committed is gone, and a member is added that is
// not there yet: exactly half of the voters to come is alive. A majority of them
// has one of the living, which therefore must hold all.
func TestMemberIsAddedWhileOneIsDown(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			g := newGroup(t, n)
			g.elect(1)
			for i := range 10 {
				g.propose(1, payload(i, 1000+i))
			}
			for id := 1; id <= (n-1)/2; id++ {
				g.stop(uint64(id))
			}
			g.tick(40)
			lead := g.nodes[uint64(n)].rn.BasicStatus().Lead
			require.NotZero(t, lead)
			fresh := uint64(n + 1)
			change := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(fresh)}}}
			require.NoError(t, g.nodes[lead].rn.ProposeConfChange(change))
			g.tick(10)
			require.Contains(t, g.nodes[lead].conf.GetVoters(), fresh)
		})
	}
}

// TestLostReports: members whose reports get lost on the way are not taken for
// members that hold nothing coded. So the group of five does not become one of
// three, of which two could not restore what was coded for five; with reports it
// does.
func TestLostReports(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	want := payload(1, 3000)
	g.propose(1, want)
	g.drop = func(m *pb.Message) bool {
		if m.GetType() == pb.MsgAppResp {
			m.Context = nil
		}
		return false
	}
	g.change(1, remove(4), remove(5))
	g.tick(30)
	require.NotEmpty(t, g.nodes[1].rn.Status().Config.Voters[1], "the joint configuration is left")
	g.drop = nil
	more := payload(2, 10)
	g.propose(1, more) // so that all are heard
	g.tick(30)
	require.Empty(t, g.nodes[1].rn.Status().Config.Voters[1])
	g.requireApplied([][]byte{want, more}, 1, 2, 3)
}

// TestSlowMembersAreWaitedFor: two of five change places with learners that answer,
// but take their time to get the log. While the joint configuration waits for them,
// its leader does not raise again what it has raised.
func TestSlowMembersAreWaitedFor(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	for i := range 20 {
		g.propose(1, payload(i, 3000))
	}
	sent := 0
	g.drop = func(m *pb.Message) bool {
		sent++
		require.Less(t, sent, 5000, "carriers follow each other without end")
		return m.GetTo() > 5 && (m.GetType() == pb.MsgApp || m.GetType() == pb.MsgSnap)
	}
	become := func(typ pb.ConfChangeType, id uint64) *pb.ConfChangeSingle {
		return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: new(id)}
	}
	for _, id := range []uint64{6, 7} {
		g.nodes[id] = &codingNode{id: id, storage: raft.NewMemoryStorage()}
		g.start(id)
		g.change(1, become(pb.ConfChangeAddLearnerNode, id))
	}
	g.stop(5)
	g.tick(15)
	leader := g.nodes[1]
	leader.rn.ReportSnapshot(6, raft.SnapshotFailure)
	leader.rn.ReportSnapshot(7, raft.SnapshotFailure)
	_, err := leader.storage.CreateSnapshot(leader.index, leader.conf, encodeAll(leader.applied))
	require.NoError(t, err)
	require.NoError(t, leader.rn.ProposeConfChange(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{
		remove(4), remove(5), become(pb.ConfChangeAddNode, 6), become(pb.ConfChangeAddNode, 7),
	}}))
	g.tick(100)
	require.NotEmpty(t, leader.conf.GetVotersOutgoing())
	g.drop = nil
	g.tick(30)
	require.Empty(t, leader.conf.GetVotersOutgoing())
}

// TestChangesInARow: a host that checks changes itself proposes the next one before
// the leader has applied the last. Each is checked for the voters that it leads to,
// which are not known before: so after two removals from five, with a third member
// dead, the two that are left restore what was coded for five.
func TestChangesInARow(t *testing.T) {
	for name, changes := range map[string][][]*pb.ConfChangeSingle{
		"simple": {{remove(4)}, {remove(5)}},
		"joint":  {{remove(4), remove(5)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 5)
			g.hostChecks = true
			for _, id := range g.ids() {
				g.start(id)
			}
			g.elect(1)
			want := [][]byte{payload(1, 3000)}
			g.propose(1, want[0])
			for _, c := range changes {
				cc := &pb.ConfChangeV2{Changes: c}
				if len(c) > 1 {
					cc.Transition = pb.ConfChangeTransitionJointExplicit.Enum()
				}
				require.NoError(t, g.nodes[1].rn.ProposeConfChange(cc))
			}
			g.tick(20)
			require.Equal(t, []uint64{1, 2, 3}, g.nodes[1].conf.GetVoters())
			require.Empty(t, g.nodes[1].conf.GetVotersOutgoing())
			g.stop(1, 4, 5)
			for _, id := range []uint64{2, 3} { // what they have applied is not on their disks
				g.nodes[id].index, g.nodes[id].applied = 1, nil
				g.start(id)
			}
			g.tick(60)
			g.requireApplied(want, 2, 3)
		})
	}
}
