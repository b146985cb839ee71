// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// solo is one node of a group, with everybody else played by the test.
type solo struct {
	t *testing.T
	*raft
	sent []*pb.Message // since this was last looked at
}

func newSolo(t *testing.T, cfg Config, voters ...uint64) *solo {
	t.Helper()
	ms := NewMemoryStorage()
	require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: voters},
	}}))
	require.NoError(t, ms.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
	cfg.ID, cfg.ElectionTick, cfg.HeartbeatTick, cfg.Storage = 1, 10, 1, ms
	cfg.MaxInflightMsgs, cfg.MaxSizePerMsg = 8, noLimit
	r, err := newRaft(&cfg)
	require.NoError(t, err)
	return &solo{t: t, raft: r}
}

// settleAll has the node hear what it says to itself; nothing of it is written.
func (a *solo) settleAll() {
	for len(a.outbox)+len(a.vouching) > 0 {
		all := append(a.outbox, a.vouching...)
		a.outbox, a.vouching = nil, nil
		for _, m := range all {
			if m.GetTo() == a.id {
				require.NoError(a.t, a.Step(m))
			} else {
				a.sent = append(a.sent, m)
			}
		}
	}
}

// hear steps an answer of each of the others, in the node's term.
func (a *solo) hear(m *pb.Message, from ...uint64) {
	a.t.Helper()
	for _, id := range from {
		answer := proto.Clone(m).(*pb.Message)
		answer.From, answer.To, answer.Term = new(id), new(a.id), new(a.term)
		require.NoError(a.t, a.Step(answer))
		a.settleAll()
	}
}

// lead has the node win an election and commit the entry that begins its term.
func (a *solo) lead(others ...uint64) *leader {
	a.t.Helper()
	require.NoError(a.t, a.Step(&request(pb.MsgHup).msg))
	a.settleAll()
	a.hear(&pb.Message{Type: pb.MsgVoteResp.Enum()}, others...)
	if _, ok := a.role.(*recoverer); ok { // it learns the commit index first
		for _, id := range others {
			require.NoError(a.t, a.Step(&pb.Message{Type: MsgUnits.Enum(), From: new(id), To: new(a.id), Term: new(uint64(0)),
				LogTerm: new(a.term), Commit: new(a.log.committed), Context: []byte{'r'}}))
		}
		a.settleAll()
	}
	l := a.leading()
	require.NotNil(a.t, l)
	a.hear(&pb.Message{Type: pb.MsgAppResp.Enum(), Index: new(a.log.last().Index)}, others...)
	require.Equal(a.t, a.log.last().Index, a.log.committed)
	return l
}

// changeInLog appends a configuration change that is not in force.
func (a *solo) changeInLog(text string) {
	a.t.Helper()
	changes, err := pb.ConfChangesFromString(text)
	require.NoError(a.t, err)
	data, err := proto.Marshal(&pb.ConfChangeV2{Changes: changes})
	require.NoError(a.t, err)
	e := &pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(1)), Index: new(a.log.last().Index + 1), Data: data}
	a.log.appendAfter(a.log.last(), []*pb.Entry{e})
}

// twoChanges returns a node that leads {1, 2, 3} with two changes in its log that are
// not in force here and may be elsewhere: 4 joins, 2 leaves.
func twoChanges(t *testing.T, cfg Config) (*solo, *leader) {
	t.Helper()
	cfg.Coding = &Coding{}
	a := newSolo(t, cfg, 1, 2, 3)
	a.changeInLog("v4")
	a.changeInLog("r2")
	return a, a.lead(2, 3, 4)
}

// TestReadsNeedAllSets: 3 and 4, which have both changes in force, can elect 3 and
// commit without the others. So that 1 and 2 are a majority of the members in force
// here does not make a read at 1 linearizable.
func TestReadsNeedAllSets(t *testing.T) {
	a, l := twoChanges(t, Config{})
	require.NoError(t, a.Step(&request(pb.MsgReadIndex).withData([]byte("r")).msg))
	a.settleAll()
	confirm := &pb.Message{Type: pb.MsgHeartbeatResp.Enum(), Context: l.reads.round()}
	a.hear(confirm, 2)
	require.Empty(t, a.readStates)
	a.hear(confirm, 4)
	require.Equal(t, []ReadState{{Index: a.log.committed, RequestCtx: []byte("r")}}, a.readStates)
}

// TestQuorumOfAllSets: nor does hearing from 2 alone let the leader go on.
func TestQuorumOfAllSets(t *testing.T) {
	for _, heard := range [][]uint64{{2}, {4}, {2, 4}} {
		a, l := twoChanges(t, Config{CheckQuorum: true})
		require.True(t, l.checkQuorum())
		a.hear(&pb.Message{Type: pb.MsgHeartbeatResp.Enum()}, heard...)
		require.Equal(t, len(heard) == 2, l.checkQuorum(), heard)
	}
}

// TestCommitsNeedAllSets: nor may it commit what 2 alone has acknowledged: 3 and 4 could
// elect 3, which has not got it.
func TestCommitsNeedAllSets(t *testing.T) {
	a, l := twoChanges(t, Config{})
	require.NoError(t, a.Step(&request(pb.MsgProp).withData([]byte("x")).msg))
	a.settle()
	before, last := l.log.committed, l.log.last().Index
	require.Equal(t, before+1, last)
	ack := &pb.Message{Type: pb.MsgAppResp.Enum(), Index: new(last)}
	a.hear(ack, 2)
	require.Equal(t, before, l.log.committed)
	a.hear(ack, 4)
	require.Equal(t, last, l.log.committed)
}

// TestReadAtFormerVoter: the leader of two removes itself, or becomes a learner, and
// goes on leading until there is another. The voter that is left needs nobody to win
// the next term, so the old leader asks it before it answers a read.
func TestReadAtFormerVoter(t *testing.T) {
	for _, text := range []string{"r1", "l1"} {
		a := newSolo(t, Config{}, 1, 2)
		l := a.lead(2)
		changes, err := pb.ConfChangesFromString(text)
		require.NoError(t, err)
		cc := &pb.ConfChangeV2{Changes: changes}
		a.applyConfChange(cc)
		require.Equal(t, StateLeader, a.role.state())
		require.NoError(t, a.Step(&request(pb.MsgReadIndex).withData([]byte("r")).msg))
		require.Empty(t, a.readStates, text)
		a.settleAll()
		a.hear(&pb.Message{Type: pb.MsgHeartbeatResp.Enum(), Context: l.reads.round()}, 2)
		require.Len(t, a.readStates, 1, text)
	}
}

// TestAskedAnewIsNotStuck: a leader whose log has become dense asks all members anew.
// One that said before that it is stuck is sent the question like the others, and not
// snapshots until it answers what it was never sent.
func TestAskedAnewIsNotStuck(t *testing.T) {
	a := newSolo(t, Config{Coding: &Coding{Plain: true}}, 1, 2, 3)
	a.lead(2, 3)
	rn := &RawNode{raft: a.raft}
	stuck := append([]byte{1, 2, 0, 0, 0, 0, 0}, byte(a.log.committed)) // a report: version, flag, ..., stuck at
	a.hear(&pb.Message{Type: pb.MsgAppResp.Enum(), Index: new(a.log.last().Index), Context: stuck}, 2)
	rn.Tick()
	withheld := func() bool { return a.extension.Room(2, a.log.last().Index+1) == 0 }
	require.True(t, withheld())
	a.settleAll()
	a.sent = nil
	rn.Densify(false)
	a.settleAll()
	require.False(t, withheld())
	require.Equal(t, pb.MsgApp, a.sent[0].GetType())
	require.Equal(t, uint64(2), a.sent[0].GetTo())
	require.Len(t, a.sent[0].GetEntries(), 1)
}

// TestWaitingLeaveIsTheOne: a host proposes to leave a joint configuration that is left
// by itself, too; its proposal waits. Meanwhile nothing is appended in that matter: it
// would be refused, as an empty entry, and another with each that is applied.
func TestWaitingLeaveIsTheOne(t *testing.T) {
	a := newSolo(t, Config{Coding: &Coding{}}, 1, 2, 3)
	l := a.lead(2, 3)
	changes, err := pb.ConfChangesFromString("v4 r3")
	require.NoError(t, err)
	a.applyConfChange(&pb.ConfChangeV2{Transition: pb.ConfChangeTransitionJointImplicit.Enum(), Changes: changes})
	require.True(t, l.members.MustLeave())
	l.held = &pb.Entry{Type: pb.EntryConfChangeV2.Enum()}
	last := a.log.last().Index
	l.leaveJointIfDue()
	require.Equal(t, last, a.log.last().Index)
	l.retryHeld()
	require.Equal(t, last+1, a.log.last().Index)
	require.Equal(t, last+1, a.members.FirstPending())
}

// TestLeaderForgetsMembersOfRefusedChanges: two changes in the log of a leader bring
// voters that it replicates to before they are in force. Its host refuses both as it
// applies them: by changes of node 0 or, where it applies first, by its report. The leader then
// follows its members only, and what a majority of them holds is committed.
func TestLeaderForgetsMembersOfRefusedChanges(t *testing.T) {
	none := (&pb.ConfChange{NodeId: new(uint64)}).AsV2()
	for name, host := range map[string]struct {
		first   bool
		refuses func(a *solo)
	}{
		"both at once":        {true, func(a *solo) { a.appliedTo(3, 0) }},
		"one after the other": {true, func(a *solo) { a.appliedTo(2, 0); a.appliedTo(3, 0) }},
		"by node 0":           {false, func(a *solo) { a.appliedTo(3, 0); a.applyConfChange(none); a.applyConfChange(none) }},
	} {
		a := newSolo(t, Config{Coding: &Coding{}, ConfChangesFirst: host.first}, 1, 2, 3)
		a.changeInLog("v4")
		a.changeInLog("v5")
		l := a.lead(2, 3, 4, 5)
		require.Len(t, l.members.All(), 5, name)
		require.NoError(t, l.propose([]*pb.Entry{{Data: []byte("x")}}))
		a.settleAll()
		last := a.log.last().Index
		a.hear(&pb.Message{Type: pb.MsgAppResp.Enum(), Index: new(last)}, 2)
		require.Less(t, a.log.committed, last, "three of five are needed")
		host.refuses(a)
		require.Len(t, l.members.All(), 3, name)
		require.Equal(t, last, a.log.committed, name)
	}
}

// TestReportDoesNotEndAChange: a host that reports first has not put the changes into force.
// They go on to count, and nothing is appended behind them.
func TestReportDoesNotEndAChange(t *testing.T) {
	a := newSolo(t, Config{Coding: &Coding{}}, 1, 2, 3)
	a.changeInLog("v4")
	a.changeInLog("v5")
	l := a.lead(2, 3, 4, 5)
	a.appliedTo(3, 0)
	require.Len(t, l.members.All(), 5)
	require.Len(t, l.members.Sets(), 4)
	require.ErrorContains(t, l.members.MayFollow(), "entry 2 waits for the host's ApplyConfChange")
}

// TestChangeThatDoesNotFitIsRefused: with coding or leases a change may wait while the members
// change. In the log it would stop every node when it is applied.
func TestChangeThatDoesNotFitIsRefused(t *testing.T) {
	a := newSolo(t, Config{Coding: &Coding{}}, 1, 2)
	l := a.lead(2)
	for _, text := range []string{"r1 l2", "r1 r2"} {
		changes, err := pb.ConfChangesFromString(text)
		require.NoError(t, err)
		data, err := proto.Marshal(&pb.ConfChangeV2{Changes: changes})
		require.NoError(t, err)
		require.NoError(t, l.propose([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Data: data}}))
		e, err := a.log.entry(a.log.last().Index)
		require.NoError(t, err)
		require.Equal(t, pb.EntryNormal, e.GetType(), "%s leaves no voter", text)
		a.settleAll()
	}
}
