// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
)

var (
	// ErrCompacted says that an index lies before the first entry that is kept.
	ErrCompacted = errors.New("requested index is unavailable due to compaction")

	// ErrSnapOutOfDate says that a snapshot is no newer than the one that is kept.
	ErrSnapOutOfDate = errors.New("requested index is older than the existing snapshot")

	// ErrUnavailable says that an index lies behind the last entry.
	ErrUnavailable = errors.New("requested entry at index is unavailable")

	// ErrSnapshotTemporarilyUnavailable says that a snapshot is being made: the
	// leader will ask again.
	ErrSnapshotTemporarilyUnavailable = errors.New("snapshot is temporarily unavailable")

	// ErrStorage wraps the first unexpected error of a Storage. From then on
	// the node is out of service: Step, Propose and the like return the error,
	// ticks do nothing, and there is no Ready, so that nothing is promised on
	// the word of a log that cannot be read. The host mends its storage and
	// makes a new node.
	ErrStorage = errors.New("raft: storage failed, the node is out of service")
)

// Storage is what the state machine reads of what the host has written. The
// host writes through its own implementation; the state machine only reads.
// An entry, once appended, is never changed in place by either side.
//
// Methods may be called while the host writes: implementations lock as needed.
// Errors other than the package's own end the node's service: see [ErrStorage].
type Storage interface {
	// InitialState returns the hard state (nil when none was written) and the
	// configuration of the latest snapshot (never nil). It is called once.
	InitialState() (*pb.HardState, *pb.ConfState, error)

	// Entries returns entries in [lo, hi): a prefix of them whose encoded size
	// is at most maxSize bytes, but at least one. The caller owns the slice and
	// may append to it; the entries themselves are shared and constant.
	// It returns [ErrCompacted] if lo is before the first index, and
	// [ErrUnavailable] if an entry is missing.
	Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error)

	// Term returns the term of entry i, for i in [FirstIndex()-1, LastIndex()].
	// The term just before the first entry is kept, as it is needed to append
	// that one. Below the range it returns [ErrCompacted], above [ErrUnavailable].
	Term(i uint64) (uint64, error)
	// LastIndex returns the index of the last entry, or of the snapshot when
	// there is no entry behind it.
	LastIndex() (uint64, error)
	// FirstIndex returns the index of the first entry that Entries can return:
	// one more than the snapshot's when there is none.
	FirstIndex() (uint64, error)
	// Snapshot returns the latest snapshot, for a follower whose next entry is
	// compacted. If it must be made first, Snapshot starts that and returns
	// [ErrSnapshotTemporarilyUnavailable].
	Snapshot() (*pb.Snapshot, error)
}
