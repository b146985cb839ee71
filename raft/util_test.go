// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// newStorage returns a storage whose group has the given voters.
func newStorage(t testing.TB, voters ...uint64) *raft.MemoryStorage {
	t.Helper()
	s := raft.NewMemoryStorage()
	require.NoError(t, s.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: voters},
	}}))
	return s
}

func config(s raft.Storage) *raft.Config {
	return &raft.Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: s, Logger: silent.Logger{},
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256,
	}
}

func newNode(t testing.TB, c *raft.Config) *raft.RawNode {
	t.Helper()
	rn, err := raft.NewRawNode(c)
	require.NoError(t, err)
	return rn
}

// drain writes and applies everything, and returns the messages that were to be
// sent.
func drain(t testing.TB, rn *raft.RawNode, s *raft.MemoryStorage) []*pb.Message {
	t.Helper()
	var sent []*pb.Message
	for rn.HasReady() {
		rd := rn.Ready()
		if !raft.IsEmptySnap(rd.Snapshot) {
			require.NoError(t, s.ApplySnapshot(rd.Snapshot))
		}
		if !raft.IsEmptyHardState(rd.HardState) {
			require.NoError(t, s.SetHardState(rd.HardState))
		}
		require.NoError(t, s.Append(rd.Entries))
		sent = append(sent, rd.Messages...)
		rn.Advance(rd)
	}
	return sent
}

// lead makes node 1 leader; the other voters' answers are made up.
func lead(t testing.TB, rn *raft.RawNode, s *raft.MemoryStorage, others ...uint64) {
	t.Helper()
	require.NoError(t, rn.Campaign())
	drain(t, rn, s)
	for _, id := range others {
		require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgVoteResp.Enum(), From: new(id), To: new(uint64(1)), Term: new(rn.BasicStatus().GetTerm())}))
	}
	drain(t, rn, s)
	require.Equal(t, raft.StateLeader, rn.BasicStatus().RaftState)
}

var errDisk = errors.New("disk on fire")
