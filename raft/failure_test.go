// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// failing is a storage of which one method fails when broken says so.
type failing struct {
	*raft.MemoryStorage
	broken string
}

func (f *failing) err(method string) error {
	if f.broken == method {
		return errDisk
	}
	return nil
}

func (f *failing) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, cs, _ := f.MemoryStorage.InitialState()
	return hs, cs, f.err("InitialState")
}

func (f *failing) Entries(lo, hi, max uint64) ([]*pb.Entry, error) {
	if err := f.err("Entries"); err != nil {
		return nil, err
	}
	return f.MemoryStorage.Entries(lo, hi, max)
}

func (f *failing) Term(i uint64) (uint64, error) {
	if err := f.err("Term"); err != nil {
		return 0, err
	}
	return f.MemoryStorage.Term(i)
}

func (f *failing) LastIndex() (uint64, error) {
	i, _ := f.MemoryStorage.LastIndex()
	return i, f.err("LastIndex")
}

func (f *failing) FirstIndex() (uint64, error) {
	i, _ := f.MemoryStorage.FirstIndex()
	return i, f.err("FirstIndex")
}

func (f *failing) Snapshot() (*pb.Snapshot, error) {
	if f.broken == "empty Snapshot" {
		return &pb.Snapshot{}, nil
	}
	if err := f.err("Snapshot"); err != nil {
		return nil, err
	}
	return f.MemoryStorage.Snapshot()
}

// A node whose storage cannot be read does not start.
func TestStorageFailsAtStart(t *testing.T) {
	for _, method := range []string{"InitialState", "FirstIndex", "LastIndex", "Term"} {
		_, err := raft.NewRawNode(config(&failing{newStorage(t, 1), method}))
		require.ErrorIs(t, err, raft.ErrStorage, method)
		require.ErrorIs(t, err, errDisk, method)
		require.ErrorContains(t, err, method)
	}
}

// A node with coding reads its log at the start, and gives the storage's reason if an
// entry cannot be read: the damaged place of a log, for example.
func TestUnreadableEntryAtStartKeepsItsReason(t *testing.T) {
	s := newStorage(t, 1)
	require.NoError(t, s.Append([]*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(1))}}))
	cfg := config(&failing{s, "Entries"})
	cfg.Coding = &raft.Coding{}
	_, err := raft.NewRawNode(cfg)
	require.ErrorIs(t, err, raft.ErrStorage)
	require.ErrorIs(t, err, errDisk)
	require.ErrorContains(t, err, "entries from 2 on")
}

// A node whose storage fails later is out of service: it says so, and nothing
// else.
func TestStorageFailsInService(t *testing.T) {
	for method, provoke := range map[string]func(*raft.RawNode){
		// A member that is far behind asks for old entries.
		"Term":           func(rn *raft.RawNode) { _ = rn.Step(rejection(2)) },
		"FirstIndex":     func(rn *raft.RawNode) { _ = rn.Step(rejection(2)) },
		"Entries":        func(rn *raft.RawNode) { _ = rn.Step(acceptance(1)) },
		"Snapshot":       func(rn *raft.RawNode) { _ = rn.Step(rejection(0)) },
		"empty Snapshot": func(rn *raft.RawNode) { _ = rn.Step(rejection(0)) },
	} {
		t.Run(method, func(t *testing.T) {
			s := newStorage(t, 1, 2, 3)
			f := &failing{MemoryStorage: s}
			rn := newNode(t, config(f))
			lead(t, rn, s, 2)
			for range 5 {
				require.NoError(t, rn.Propose([]byte("x")))
				drain(t, rn, s)
			}
			f.broken = method
			provoke(rn)
			requireOutOfService(t, rn, method != "empty Snapshot")
		})
	}
}

// rejection is the answer of member 2, whose log ends at index.
func rejection(index uint64) *pb.Message {
	return &pb.Message{
		Type: pb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1)),
		Index: new(uint64(1)), Reject: new(true), RejectHint: new(index), LogTerm: new(uint64(1)),
	}
}

// acceptance is the answer of member 2, whose log agrees up to index.
func acceptance(index uint64) *pb.Message {
	return &pb.Message{Type: pb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1)), Index: new(index)}
}

func requireOutOfService(t *testing.T, rn *raft.RawNode, wantsCause bool) {
	t.Helper()
	err := rn.Propose([]byte("y"))
	require.ErrorIs(t, err, raft.ErrStorage)
	if wantsCause {
		require.ErrorIs(t, err, errDisk)
	}
	for range 100 {
		rn.Tick()
	}
	require.False(t, rn.HasReady())
	require.Equal(t, raft.Ready{}, rn.Ready())
	require.ErrorIs(t, rn.Campaign(), raft.ErrStorage)
	require.ErrorIs(t, rn.Step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(9))}), raft.ErrStorage)
}

// Committed entries that cannot be read are not skipped.
func TestStorageFailsBeforeApplying(t *testing.T) {
	s := newStorage(t, 1, 2)
	f := &failing{MemoryStorage: s}
	require.NoError(t, s.Append([]*pb.Entry{{Term: new(uint64(1)), Index: new(uint64(2)), Data: []byte("x")}}))
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(2))}))
	rn := newNode(t, config(f))
	require.True(t, rn.HasReady())
	f.broken = "Entries"
	require.Equal(t, raft.Ready{}, rn.Ready())
	requireOutOfService(t, rn, true)

	// The search for configuration changes fails in the same way.
	f.broken = ""
	rn = newNode(t, config(f))
	f.broken = "Entries"
	require.ErrorIs(t, rn.Campaign(), raft.ErrStorage)
	require.Equal(t, raft.StateFollower, rn.BasicStatus().RaftState)
	requireOutOfService(t, rn, true)
}
