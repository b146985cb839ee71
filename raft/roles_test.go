// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// roleTable says what each role does with each message type, arriving in its
// term: it acts (its state changes, or it has something to say), or ignores it.
// A type that is not in the table is one that this version does not know, and
// no role acts on those.
var roleTable = map[pb.MessageType]struct {
	acts    []raft.StateType
	ignores []raft.StateType
}{
	pb.MsgHup:          {acts: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate), ignores: roles(raft.StateLeader)},
	pb.MsgBeat:         {acts: roles(raft.StateLeader), ignores: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgCheckQuorum:  {acts: roles(raft.StateLeader), ignores: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgProp:         {acts: roles(raft.StateLeader, raft.StateFollower), ignores: roles(raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgApp:          {acts: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate), ignores: roles(raft.StateLeader)},
	pb.MsgHeartbeat:    {acts: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate), ignores: roles(raft.StateLeader)},
	pb.MsgSnap:         {acts: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate), ignores: roles(raft.StateLeader)},
	pb.MsgVote:         {acts: allRoles},
	pb.MsgPreVote:      {acts: allRoles},
	pb.MsgVoteResp:     {acts: roles(raft.StateCandidate), ignores: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateLeader)},
	pb.MsgPreVoteResp:  {acts: roles(raft.StatePreCandidate), ignores: roles(raft.StateFollower, raft.StateCandidate, raft.StateLeader)},
	pb.MsgAppResp:      {acts: roles(raft.StateLeader), ignores: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgUnreachable:  {acts: roles(raft.StateLeader), ignores: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgSnapStatus:   {ignores: allRoles}, // no snapshot was sent
	pb.MsgReadIndex:    {acts: roles(raft.StateLeader, raft.StateFollower), ignores: roles(raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgTimeoutNow:   {acts: roles(raft.StateFollower), ignores: roles(raft.StateLeader, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgForgetLeader: {acts: roles(raft.StateFollower), ignores: roles(raft.StateLeader, raft.StatePreCandidate, raft.StateCandidate)},

	pb.MsgReadIndexResp:     {acts: roles(raft.StateFollower), ignores: roles(raft.StateLeader, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgTransferLeader:    {acts: roles(raft.StateLeader, raft.StateFollower), ignores: roles(raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgHeartbeatResp:     {acts: roles(raft.StateLeader), ignores: roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate)},
	pb.MsgStorageAppend:     {ignores: allRoles}, // to a thread, never from one
	pb.MsgStorageApply:      {ignores: allRoles},
	pb.MsgStorageAppendResp: {ignores: allRoles}, // nothing is being written
	pb.MsgStorageApplyResp:  {ignores: allRoles},
}

var allRoles = roles(raft.StateFollower, raft.StatePreCandidate, raft.StateCandidate, raft.StateLeader)

func roles(rs ...raft.StateType) []raft.StateType { return rs }

func TestRoleTable(t *testing.T) {
	for i := range len(pb.MessageType_name) + 2 { // two types that do not exist
		typ := pb.MessageType(i)
		want := roleTable[typ]
		for _, role := range allRoles {
			acts := slices.Contains(want.acts, role)
			_, known := roleTable[typ]
			require.True(t, !known || acts != slices.Contains(want.ignores, role), "%s at %s must be in the table once", typ, role)
			require.Equal(t, acts, actsOn(t, role, typ), "%s acts on %s", role, typ)
		}
	}
}

// actsOn reports whether a node of the role does anything about a message.
func actsOn(t *testing.T, role raft.StateType, typ pb.MessageType) bool {
	t.Helper()
	s := newStorage(t, 1, 2, 3)
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
	c := config(s)
	c.PreVote = role == raft.StatePreCandidate
	rn := newNode(t, c)
	switch role {
	case raft.StateFollower:
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1))}))
	case raft.StateLeader:
		lead(t, rn, s, 2)
		ack := acceptance(2)
		ack.Term = new(rn.BasicStatus().GetTerm())
		require.NoError(t, rn.Step(ack))                                                                            // member 2 replicates, and the first entry is committed
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgCheckQuorum.Enum(), From: new(raft.LocalAppendThread)})) // forget who was active
	default:
		require.NoError(t, rn.Campaign())
	}
	drain(t, rn, s)
	before := rn.Status()
	require.Equal(t, role, before.RaftState)

	from, term := uint64(2), before.GetTerm()
	if raft.IsLocalMsg(typ) && typ != pb.MsgUnreachable && typ != pb.MsgSnapStatus {
		from, term = raft.LocalAppendThread, 0
	}
	m := &pb.Message{
		Type: typ.Enum(), From: new(from), To: new(uint64(1)), Term: new(term),
		LogTerm: new(uint64(1)), Index: new(uint64(1)), Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(uint64(2))}},
	}
	switch typ {
	case pb.MsgProp, pb.MsgReadIndex:
		m.Term = nil
	case pb.MsgAppResp, pb.MsgHeartbeatResp, pb.MsgVoteResp, pb.MsgPreVoteResp:
		m.Reject, m.Entries = new(true), nil
		m.RejectHint, m.Index = new(uint64(1)), new(uint64(3))
	case pb.MsgUnreachable:
		rn.ReportUnreachable(from)
	case pb.MsgSnapStatus:
		rn.ReportSnapshot(from, raft.SnapshotFinish)
	case pb.MsgStorageAppendResp, pb.MsgStorageApplyResp:
		m.Entries, m.Index = nil, nil
	}
	if typ == pb.MsgVoteResp || typ == pb.MsgPreVoteResp { // both others say no
		require.NoError(t, rn.Step(&pb.Message{Type: typ.Enum(), From: new(uint64(3)), Term: m.Term, Reject: new(true)}))
	}
	_ = rn.Step(m) // local reports and dropped proposals are errors; what counts is what changes
	after := rn.Status()
	recent := func(s raft.Status) bool { pr, ok := s.Progress[2]; return ok && pr.RecentActive }
	return rn.HasReady() || before.String() != after.String() || recent(before) != recent(after)
}
