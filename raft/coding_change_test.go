// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// The leader that coded what is committed is gone, and a member is added that has no
// log yet: exactly half of the voters to come has it. A majority of them has one of
// those, which therefore must hold all.
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
			g.nodes[fresh] = &codingNode{id: fresh, storage: raft.NewMemoryStorage()}
			g.start(fresh)
			g.drop = func(m *pb.Message) bool { return m.GetTo() == fresh && m.GetType() < raft.MsgUnits }
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

// TestLostReportsAfterARestart: all restart, and the leader knows of no member that it reads
// envelopes, as reports are lost. Acknowledgements that come without reports tell that their
// senders code. Where they do not, as members were started with upstream's library on a log that it
// cannot read, the entry in the leader's log does, or the one member whose reports come through. So
// the five do not become three, of which two could not restore the entry, until reports come through
// again, where nobody proposes.
func TestLostReportsAfterARestart(t *testing.T) {
	for _, tt := range []struct {
		name      string
		upstream  bool // acknowledgements are as of upstream's library
		compacted []uint64
		reports   uint64 // the member that does
		silent    bool   // after that
	}{
		{"the leader has the entry", true, nil, 0, false},
		{"one reports", true, []uint64{1}, 2, false},
		{"one has reported and is silent", false, []uint64{1, 4, 5}, 2, true},
		{"none reports", false, []uint64{1, 4, 5}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGroup(t, 5)
			g.elect(1)
			want := [][]byte{payload(1, 3000)}
			g.propose(1, want[0])
			g.tick(2)
			for _, id := range tt.compacted {
				g.compact(id, g.nodes[id].index)
			}
			for _, id := range g.ids() {
				g.start(id)
			}
			silent := false
			g.drop = func(m *pb.Message) bool {
				if m.GetType() == pb.MsgAppResp && m.GetFrom() != tt.reports {
					m.Context = nil
					if tt.upstream && !m.GetReject() {
						m.LogTerm = nil
					}
				}
				return silent && m.GetFrom() == tt.reports
			}
			g.elect(1)
			silent = tt.silent
			g.tick(5)
			g.change(1, remove(4), remove(5))
			g.tick(30)
			require.NotEmpty(t, g.nodes[1].conf.GetVotersOutgoing())
			g.drop = nil
			g.tick(60)
			if len(tt.compacted) > 1 { // nobody can restore it any more
				require.NotEmpty(t, g.nodes[1].conf.GetVotersOutgoing())
				g.compact(2, g.nodes[2].index)
				g.tick(30)
			}
			require.Equal(t, []uint64{1, 2, 3}, g.nodes[1].conf.GetVoters())
			require.Empty(t, g.nodes[1].conf.GetVotersOutgoing())
		})
	}
}

// TestMembersWithoutCodingAreWaitedForByNobody: on the way from upstream's library some members have no
// reports, and one is dead for good. A leader that codes has compacted its log, and does not know that nothing there
// was coded. Changes of the members do not wait for that.
func TestMembersWithoutCodingAreWaitedForByNobody(t *testing.T) {
	for coding := 1; coding <= 2; coding++ {
		for dead := uint64(3); dead <= 5; dead++ {
			g := newGroup(t, 5)
			for id := uint64(coding) + 1; id <= 5; id++ {
				g.startPlain(id)
			}
			g.elect(1)
			g.propose(1, payload(1, 3000))
			g.tick(2)
			g.compact(1, g.nodes[1].index)
			for id := uint64(1); id <= 5; id++ {
				if g.start(id); id > uint64(coding) {
					g.startPlain(id)
				}
			}
			g.stop(dead)
			g.elect(1)
			g.change(1, remove(4), remove(5))
			g.tick(3)
			require.Equal(t, []uint64{1, 2, 3}, g.nodes[1].conf.GetVoters())
			require.Empty(t, g.nodes[1].conf.GetVotersOutgoing())
		}
	}
}

// TestLogIsCompactedDuringACheck: the host compacts the log while the leader, to leave a
// joint configuration, looks at it. The leader asks others for the headers, and goes on.
func TestLogIsCompactedDuringACheck(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	want := [][]byte{payload(1, 3000)}
	g.propose(1, want[0])
	coded := g.nodes[1].index
	g.tick(2)
	g.reads = func(id, lo uint64) {
		if id == 1 && lo == coded {
			g.reads = nil
			g.compact(1, g.nodes[1].index)
		}
	}
	g.change(1, remove(4), remove(5))
	g.tick(30)
	require.Nil(t, g.reads)
	require.Equal(t, []uint64{1, 2, 3}, g.nodes[1].conf.GetVoters())
	require.Empty(t, g.nodes[1].conf.GetVotersOutgoing())
	g.requireApplied(want, 1, 2, 3)
}

// TestWaitingChangeReadsTheLogOnceATick: a change waits for a voter to come that stores nothing. Proposals
// go on, and the leader does not read the log again for each.
func TestWaitingChangeReadsTheLogOnceATick(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	g.propose(1, payload(1, 3000))
	coded := g.nodes[1].index
	g.tick(2)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 2 && m.GetType() == pb.MsgApp }
	g.change(1, remove(4), remove(5))
	g.tick(3)
	reads := 0
	g.reads = func(id, lo uint64) {
		if id == 1 && lo == coded {
			reads++
		}
	}
	for i := range 50 {
		g.propose(1, payload(i, 10))
	}
	require.LessOrEqual(t, reads, 1)
	require.NotEmpty(t, g.nodes[1].conf.GetVotersOutgoing())
	g.drop = nil
	g.tick(30)
	require.Empty(t, g.nodes[1].conf.GetVotersOutgoing())
}

// TestLostReleaseIsRepeated: a joint configuration waits until its new voters release an
// entry that no member can restore. One voter releases the entry, its report is lost, and no
// client proposes. The leader asks again, and the voter repeats the report.
func TestLostReleaseIsRepeated(t *testing.T) {
	g := newGroup(t, 5)
	g.elect(1)
	g.propose(1, payload(1, 3000))
	g.tick(2)
	for _, id := range []uint64{1, 4, 5} {
		g.compact(id, g.nodes[id].index)
	}
	for id := range uint64(5) { // what they had in memory is gone
		g.start(id + 1)
	}
	g.elect(1)
	g.change(1, remove(4), remove(5))
	g.tick(30)
	require.NotEmpty(t, g.nodes[1].conf.GetVotersOutgoing())
	g.compact(2, g.nodes[2].index)
	lost := 0
	g.drop = func(m *pb.Message) bool {
		if m.GetType() == pb.MsgAppResp && m.GetFrom() == 2 {
			lost++
			return true
		}
		return false
	}
	g.tick(3)
	require.NotZero(t, lost)
	g.drop = nil
	g.tick(40)
	require.Empty(t, g.nodes[1].conf.GetVotersOutgoing())
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
	leader.rn.ReportSnapshot(6, raft.SnapshotFailure)
	leader.rn.ReportSnapshot(7, raft.SnapshotFailure)
	g.tick(30)
	require.Empty(t, leader.conf.GetVotersOutgoing())
}

// TestChangesInARow: a host that checks changes itself proposes the next one before
// the leader has applied the last. Each is checked for the voters that it leads to,
// which are not known before: so after two removals from five, with a third member
// dead, the two that are left restore what was coded for five.
func TestChangesInARow(t *testing.T) {
	for name, changes := range map[string][][]*pb.ConfChangeSingle{
		"simple":    {{remove(4)}, {remove(5)}},
		"joint":     {{remove(4), remove(5)}, nil},
		"compacted": {{remove(4)}, {remove(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newHostChecked(t, 5)
			g.elect(1)
			want := [][]byte{payload(1, 3000)}
			g.propose(1, want[0])
			if name == "compacted" { // enough for either change alone have released all
				for _, id := range []uint64{1, 4, 5} {
					g.compact(id, g.nodes[id].index)
				}
				g.tick(2)
			}
			for _, c := range changes {
				require.NoError(t, g.nodes[1].rn.ProposeConfChange(explicit(c...)))
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

// newHostChecked returns a group whose hosts check changes of members themselves.
func newHostChecked(t *testing.T, n int) *group {
	g := newGroup(t, n)
	g.hostChecks = true
	for _, id := range g.ids() {
		g.start(id)
	}
	return g
}

// explicit returns a change: one that enters a joint configuration if it has several
// steps, and leaves it if it has none.
func explicit(changes ...*pb.ConfChangeSingle) *pb.ConfChangeV2 {
	cc := &pb.ConfChangeV2{Changes: changes}
	if len(changes) > 1 {
		cc.Transition = pb.ConfChangeTransitionJointExplicit.Enum()
	}
	return cc
}

// TestChangesInARowKeepTheirOrder: a change waits for the one before, and none takes
// its place: neither one that may be appended at any other time, nor, when a transfer
// of the leadership was in the way, one behind it.
func TestChangesInARowKeepTheirOrder(t *testing.T) {
	g := newHostChecked(t, 5)
	g.elect(1)
	g.propose(1, payload(1, 3000))
	leader := g.nodes[1]
	require.NoError(t, leader.rn.ProposeConfChange(explicit(remove(5))))
	require.NoError(t, leader.rn.ProposeConfChange(explicit(remove(4))))
	g.settle() // the first is in force now, the second waits for a tick
	require.ErrorIs(t, leader.rn.ProposeConfChange(explicit(remove(2), remove(3))), raft.ErrProposalDropped)

	g.stop(3) // which cannot take over
	leader.rn.TransferLeader(3)
	g.tick(3)
	require.ErrorIs(t, leader.rn.Propose(payload(2, 10)), raft.ErrProposalDropped)
	require.Equal(t, []uint64{1, 2, 3, 4}, leader.conf.GetVoters())
	g.tick(30)
	require.Equal(t, []uint64{1, 2, 3}, leader.conf.GetVoters())
}

// TestChangesInOneProposal: two changes in one message are two in a row.
func TestChangesInOneProposal(t *testing.T) {
	g := newHostChecked(t, 5)
	g.elect(1)
	g.propose(1, payload(1, 3000))
	m := &pb.Message{Type: pb.MsgProp.Enum(), To: new(uint64(1)), From: new(uint64(1))}
	for _, c := range []*pb.ConfChangeV2{explicit(remove(4), remove(5)), explicit()} {
		data, err := proto.Marshal(c)
		require.NoError(t, err)
		m.Entries = append(m.Entries, &pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: data})
	}
	require.ErrorIs(t, g.nodes[1].rn.Step(m), raft.ErrProposalDropped)
}

// TestChangesInARowWithFreshMembers: a change that brings in fresh voters waits for
// the one before. Side by side in the log, both would need the fresh ones, which wait
// for a snapshot that has them as members.
func TestChangesInARowWithFreshMembers(t *testing.T) {
	g := newHostChecked(t, 3)
	g.elect(1)
	g.propose(1, payload(1, 3000))
	leader := g.nodes[1]
	g.compact(1, leader.index)
	become := func(typ pb.ConfChangeType, id uint64) *pb.ConfChangeSingle {
		return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: new(id)}
	}
	for _, id := range []uint64{4, 5} {
		g.nodes[id] = &codingNode{id: id, storage: raft.NewMemoryStorage()}
		g.start(id)
	}
	g.drop = func(m *pb.Message) bool { return m.GetType() == pb.MsgAppResp } // so the first stays under way
	require.NoError(t, leader.rn.ProposeConfChange(explicit(become(pb.ConfChangeAddLearnerNode, 2))))
	require.NoError(t, leader.rn.ProposeConfChange(explicit(become(pb.ConfChangeAddNode, 4), become(pb.ConfChangeAddNode, 5), remove(2))))
	g.tick(3)
	g.drop = nil
	g.tick(20)
	require.Equal(t, []uint64{1, 3}, leader.conf.GetVotersOutgoing())
}

// TestMemberThatComesBackIsCheckedAnew: a member holds units of what is committed when a change is checked for
// voters of which it is one. Then it is removed, and comes back with an empty disk, for the same voters: what the earlier
// check has found holds no longer. So two more of the five may die.
func TestMemberThatComesBackIsCheckedAnew(t *testing.T) {
	g := newHostChecked(t, 6)
	g.elect(1)
	want := [][]byte{payload(1, 3000)}
	g.propose(1, want[0])
	leader := g.nodes[1]
	g.drop = func(m *pb.Message) bool { return m.GetType() == pb.MsgAppResp } // so that the second change waits for the first
	require.NoError(t, leader.rn.ProposeConfChange(explicit(learn(7))))
	require.NoError(t, leader.rn.ProposeConfChange(explicit(remove(6))))
	g.tick(3)
	g.drop = nil
	g.tick(20)
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, leader.conf.GetVoters())
	g.stop(6)
	g.change(1, remove(5))
	require.Equal(t, []uint64{1, 2, 3, 4}, leader.conf.GetVoters())
	g.fresh(5, true)
	g.drop = func(m *pb.Message) bool { return m.GetTo() == 5 && m.GetType() < raft.MsgUnits }
	g.change(1, &pb.ConfChangeSingle{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(5))})
	g.tick(20)
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, leader.conf.GetVoters())
	g.stop(1, 2)
	g.drop = nil
	for _, id := range []uint64{3, 4} { // what they have applied is not on their disks
		g.nodes[id].index, g.nodes[id].applied = 1, nil
		g.start(id)
	}
	g.tick(60)
	g.requireApplied(want, 3, 4)
}
