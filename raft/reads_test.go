// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// The only voter of a group commits entry 2, answers for it, and loses power
// before the commit index is durable, which it need not be. After the restart
// a read must not be answered by the old commit index: it would miss the entry.
func TestReadAtSingleVoterAfterRestart(t *testing.T) {
	s := newStorage(t, 1)
	require.NoError(t, s.Append([]*pb.Entry{{Term: new(uint64(1)), Index: new(uint64(2)), Data: []byte("acknowledged")}}))
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(1))}))
	rn := newNode(t, config(s))
	require.NoError(t, rn.Campaign())
	drainUntil(t, rn, s, raft.StateLeader)
	rn.ReadIndex([]byte("early"))
	reads := readsOf(t, rn, s)
	require.Equal(t, []raft.ReadState{{Index: 3, RequestCtx: []byte("early")}}, reads)
	rn.ReadIndex([]byte("later"))
	require.Equal(t, []raft.ReadState{{Index: 3, RequestCtx: []byte("later")}}, readsOf(t, rn, s))
}

// drainUntil works off Readys until the node has a role.
func drainUntil(t *testing.T, rn *raft.RawNode, s *raft.MemoryStorage, role raft.StateType) {
	t.Helper()
	for rn.BasicStatus().RaftState != role {
		require.True(t, rn.HasReady())
		rd := rn.Ready()
		require.NoError(t, s.SetHardState(rd.HardState))
		rn.Advance(rd)
	}
}

// readsOf works off all Readys and returns the reads that they confirm.
func readsOf(t *testing.T, rn *raft.RawNode, s *raft.MemoryStorage) []raft.ReadState {
	t.Helper()
	var reads []raft.ReadState
	for rn.HasReady() {
		rd := rn.Ready()
		require.NoError(t, s.Append(rd.Entries))
		reads = append(reads, rd.ReadStates...)
		rn.Advance(rd)
	}
	return reads
}
