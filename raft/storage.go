// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
)

var (
	// ErrCompacted says that an index lies before the first entry kept.
	ErrCompacted = errors.New("requested index is unavailable due to compaction")

	// ErrSnapOutOfDate says that a snapshot is no newer than the present snapshot.
	ErrSnapOutOfDate = errors.New("requested index is older than the existing snapshot")

	// ErrUnavailable says that an index lies behind the last entry.
	ErrUnavailable = errors.New("requested entry at index is unavailable")

	// ErrSnapshotTemporarilyUnavailable says that a snapshot is being made: the
	// leader will ask again.
	ErrSnapshotTemporarilyUnavailable = errors.New("snapshot is temporarily unavailable")

	// ErrStorage wraps the first unexpected error of a Storage. From then on the node
	// is out of service: Step, Propose and the like return the error, ticks do nothing,
	// and there is no Ready, so that the node promises nothing on the word of an
	// unreadable log. The host mends its storage and makes a new node.
	ErrStorage = errors.New("raft: storage failed, the node is out of service")
)

// Storage is the state machine's view of the host's writes. The host writes through its
// own implementation; the state machine only reads. An entry, once appended, is never
// changed in place by either side.
//
// Methods may be called while the host writes: implementations lock as needed.
// Errors other than the package's own end the node's service: see [ErrStorage].
type Storage interface {
	// InitialState returns the hard state (nil when none was written) and the
	// configuration of the latest snapshot (never nil). The state machine calls
	// InitialState once.
	InitialState() (*pb.HardState, *pb.ConfState, error)

	// Entries returns entries in [lo, hi): a prefix of them whose encoded size is at
	// most maxSize bytes, but at least one. The caller owns the slice and may append to
	// it; the entries themselves are shared and constant. Errors: [ErrCompacted] if lo
	// is before the first index, [ErrUnavailable] if an entry is missing.
	Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error)

	// Term returns the term of entry i, for i in [FirstIndex()-1, LastIndex()]. A
	// storage keeps the term just before the first entry, because appending the first
	// entry needs it. Below the range the error is [ErrCompacted], above
	// [ErrUnavailable].
	Term(i uint64) (uint64, error)
	// LastIndex returns the index of the last entry, or of the snapshot if no entry
	// follows.
	LastIndex() (uint64, error)
	// FirstIndex returns the first index available from Entries: the snapshot's plus 1
	// if there is no entry.
	FirstIndex() (uint64, error)
	// Snapshot returns the latest snapshot, for a follower whose next entry is
	// compacted. If a snapshot must be made first, Snapshot starts the work and returns
	// [ErrSnapshotTemporarilyUnavailable].
	Snapshot() (*pb.Snapshot, error)
}
