// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// With async storage writes the votes of others may arrive before the
// candidate's own term and vote are written. It must not lead on them: after a
// power failure it could win the same term once more, and write other entries
// under the same index and term.
func TestCandidateWaitsForItsOwnVote(t *testing.T) {
	c := config(newStorage(t, 1, 2, 3))
	c.AsyncStorageWrites = true
	rn := newNode(t, c)
	require.NoError(t, rn.Campaign())
	rd := rn.Ready()
	for _, id := range []uint64{2, 3} {
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgVoteResp.Enum(), From: new(id), To: new(uint64(1)), Term: new(uint64(1))}))
	}
	require.Equal(t, raft.StateCandidate, rn.BasicStatus().RaftState)
	write := rd.Messages[len(rd.Messages)-1]
	require.Equal(t, raft.LocalAppendThread, write.GetTo())
	for _, m := range write.GetResponses() {
		require.NoError(t, rn.Step(m))
	}
	require.Equal(t, raft.StateLeader, rn.BasicStatus().RaftState)
}
