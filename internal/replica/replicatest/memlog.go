// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package replicatest has what tests of replicas and of their drivers share.
package replicatest

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// MemLog is a replica.Log in memory: an entry is durable at once.
type MemLog struct{ *raft.MemoryStorage }

// NewMemLog returns an empty log.
func NewMemLog() MemLog { return MemLog{raft.NewMemoryStorage()} }

// Append writes at once, and calls done, unless nil, before it returns.
func (l MemLog) Append(w storage.Write, done func(error)) error {
	if w.Snapshot != nil {
		if err := l.ApplySnapshot(w.Snapshot); err != nil {
			return err
		}
	}
	if err := l.MemoryStorage.Append(w.Entries); err != nil {
		return err
	}
	if w.HardState != nil {
		if err := l.SetHardState(w.HardState); err != nil {
			return err
		}
	}
	if done != nil {
		done(nil)
	}
	return nil
}

// SetSnapshot keeps a snapshot that stands for the entries up to its index.
func (l MemLog) SetSnapshot(meta *pb.SnapshotMetadata, data []byte) error {
	_, err := l.CreateSnapshot(meta.GetIndex(), meta.GetConfState(), data)
	return err
}
