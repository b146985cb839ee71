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

// takeOut drops every entry from a slice, in place.
func takeOut(ents []*pb.Entry) { _ = slices.DeleteFunc(ents, func(*pb.Entry) bool { return true }) }

// filterHost runs a node whose host drops entries from CommittedEntries in place, and returns the
// messages to other nodes.
func filterHost(t *testing.T, rn *raft.RawNode, s *raft.MemoryStorage, async bool) (sent []*pb.Message) {
	for rn.HasReady() {
		rd := rn.Ready()
		require.NoError(t, s.Append(rd.Entries))
		takeOut(rd.CommittedEntries)
		var answers []*pb.Message
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalApplyThread:
				takeOut(m.Entries)
				answers = append(answers, m.Responses...)
			case raft.LocalAppendThread:
				answers = append(answers, m.Responses...)
			default:
				sent = append(sent, m)
			}
		}
		for _, m := range answers {
			if m.GetTo() == 1 {
				require.NoError(t, rn.Step(m))
			} else {
				sent = append(sent, m)
			}
		}
		if !async {
			rn.Advance(rd)
		}
	}
	return sent
}

// A host may drop entries from CommittedEntries in place: the slice is the host's. The log, in
// memory and in Storage, keeps its entries, and all of the entries count as applied.
func TestHostMayFilterCommittedEntriesInPlace(t *testing.T) {
	const size = 1 << 10
	for name, async := range map[string]bool{"Advance": false, "async": true} {
		t.Run("single voter, "+name, func(t *testing.T) {
			s := newStorage(t, 1)
			c := config(s)
			c.AsyncStorageWrites, c.MaxCommittedSizePerReady = async, 4*size
			rn := newNode(t, c)
			require.NoError(t, rn.Campaign())
			filterHost(t, rn, s, async)
			for range 20 { // more than MaxCommittedSizePerReady
				require.NoError(t, rn.Propose(make([]byte, size)))
				filterHost(t, rn, s, async)
			}
			require.EqualValues(t, 22, rn.BasicStatus().Applied)
			requireWhole(t, s, 2, 22)
		})
		t.Run("follower, "+name, func(t *testing.T) {
			s := newStorage(t, 1, 2, 3)
			c := config(s)
			c.AsyncStorageWrites = async
			rn := newNode(t, c)
			for i := uint64(1); i < 40; i += 2 {
				// The entries commit with the message that brings the entries.
				m := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
					LogTerm: new(min(i, 2)), Index: &i, Commit: new(i + 2)}
				for k := i + 1; k <= i+2; k++ {
					m.Entries = append(m.Entries, &pb.Entry{Term: new(uint64(2)), Index: new(k), Data: make([]byte, size)})
				}
				require.NoError(t, rn.Step(m))
				filterHost(t, rn, s, async)
				require.Equal(t, i+2, rn.BasicStatus().Applied)
				require.NotContains(t, m.Entries, (*pb.Entry)(nil))
			}
			requireWhole(t, s, 2, 41)
		})
	}
}

// Between Ready and Advance a node still answers from its entries in memory.
func TestTailOutlivesFilteredCommittedEntries(t *testing.T) {
	s := newStorage(t, 1)
	rn := newNode(t, config(s))
	require.NoError(t, rn.Campaign())
	filterHost(t, rn, s, false)
	require.NoError(t, rn.Propose([]byte("a")))
	rd := rn.Ready()
	require.NoError(t, s.Append(rd.Entries))
	rn.Advance(rd)
	rd = rn.Ready()
	require.Len(t, rd.CommittedEntries, 1)
	takeOut(rd.CommittedEntries)
	require.NoError(t, rn.Propose([]byte("b")))
	rn.Advance(rd)
	filterHost(t, rn, s, false)
	requireWhole(t, s, 2, 4)
	require.EqualValues(t, 4, rn.BasicStatus().Applied)
}

// requireWhole checks that a storage has the entries from first to last.
func requireWhole(t *testing.T, s *raft.MemoryStorage, first, last uint64) {
	t.Helper()
	ents, err := s.Entries(first, last+1, 1<<30)
	require.NoError(t, err)
	require.Len(t, ents, int(last-first+1))
	for i, e := range ents {
		require.Equal(t, first+uint64(i), e.GetIndex())
	}
}

// The data of a snapshot may be the whole state of a host. A node copies it nowhere on its way from the message to the host.
func TestDataOfASnapshotIsNotCopied(t *testing.T) {
	for name, async := range map[string]bool{"Advance": false, "async": true} {
		t.Run(name, func(t *testing.T) {
			c := config(newStorage(t, 1, 2))
			c.AsyncStorageWrites = async
			rn, data := newNode(t, c), []byte("the state")
			require.NoError(t, rn.Step(&pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)), Snapshot: &pb.Snapshot{
				Data: data, Metadata: &pb.SnapshotMetadata{Index: new(uint64(9)), Term: new(uint64(2)), ConfState: &pb.ConfState{Voters: []uint64{1, 2}}},
			}}))
			rd := rn.Ready()
			require.Same(t, &data[0], &rd.Snapshot.Data[0])
			for _, m := range rd.Messages {
				if m.GetTo() == raft.LocalAppendThread {
					require.Same(t, &data[0], &m.Snapshot.Data[0])
				}
			}
		})
	}
}
