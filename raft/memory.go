// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"

	pb "go.etcd.io/raft/v3/raftpb"
)

// MemoryStorage is a [Storage] in memory, for tests and for hosts with a durable log of
// their own. All methods except InitialState may be called from several goroutines.
//
// Breaking the contract (a gap in the log, a snapshot or a compaction behind its end)
// panics through the package's logger.
type MemoryStorage struct {
	// The embedded mutex guards all fields. A host holding the mutex must not call any
	// method except InitialState.
	sync.Mutex

	hardState *pb.HardState
	snapshot  *pb.Snapshot
	// base is the position just before the log: the last compacted entry, or the
	// snapshot's.
	base ecraft.ID
	// log[i] has index base.index+1+i. Invariant: no element changes, because readers
	// share the array; truncation makes a new array.
	log []*pb.Entry
}

// NewMemoryStorage returns an empty storage: its first entry will have index 1.
func NewMemoryStorage() *MemoryStorage {
	return &MemoryStorage{snapshot: pb.EnsureSnapshot(nil)}
}

func (ms *MemoryStorage) lastIndex() uint64 { return ms.base.Index + uint64(len(ms.log)) }

// InitialState implements [Storage]. Unlike the other methods InitialState does not
// take the mutex, because hosts of upstream's library may hold the mutex here: a host
// must, if another goroutine may write.
func (ms *MemoryStorage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	cs := pb.EnsureConfState(ms.snapshot.GetMetadata().GetConfState())
	return ms.hardState, cs, nil
}

// SetHardState keeps st as the current hard state. The error is always nil.
func (ms *MemoryStorage) SetHardState(st *pb.HardState) error {
	ms.Lock()
	ms.hardState = st
	ms.Unlock()
	return nil
}

// Entries implements [Storage].
func (ms *MemoryStorage) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	ms.Lock()
	defer ms.Unlock()
	switch {
	case lo <= ms.base.Index:
		return nil, ErrCompacted
	case hi > ms.lastIndex()+1:
		getLogger().Panicf("raft: MemoryStorage.Entries: hi is %d, but the last index is %d", hi, ms.lastIndex())
	case len(ms.log) == 0:
		return nil, ErrUnavailable
	}
	first := ms.base.Index + 1
	return slices.Clip(limitSize(ms.log[lo-first:hi-first], entryEncodingSize(maxSize))), nil
}

// Term implements [Storage].
func (ms *MemoryStorage) Term(i uint64) (uint64, error) {
	ms.Lock()
	defer ms.Unlock()
	switch {
	case i < ms.base.Index:
		return 0, ErrCompacted
	case i > ms.lastIndex():
		return 0, ErrUnavailable
	}
	return ms.termAt(i), nil
}

// termAt returns the term at an index in [base.index, lastIndex].
func (ms *MemoryStorage) termAt(i uint64) uint64 {
	if i == ms.base.Index {
		return ms.base.Term
	}
	return ms.log[i-ms.base.Index-1].GetTerm()
}

// LastIndex implements [Storage].
func (ms *MemoryStorage) LastIndex() (uint64, error) {
	ms.Lock()
	defer ms.Unlock()
	return ms.lastIndex(), nil
}

// FirstIndex implements [Storage].
func (ms *MemoryStorage) FirstIndex() (uint64, error) {
	ms.Lock()
	defer ms.Unlock()
	return ms.base.Index + 1, nil
}

// Snapshot implements [Storage]. The caller owns the result.
func (ms *MemoryStorage) Snapshot() (*pb.Snapshot, error) {
	ms.Lock()
	defer ms.Unlock()
	return cloneSnapshot(pb.EnsureSnapshot(ms.snapshot)), nil
}

// ApplySnapshot replaces everything by the snapshot. If the present snapshot is as new,
// ApplySnapshot changes nothing and returns [ErrSnapOutOfDate].
func (ms *MemoryStorage) ApplySnapshot(snap *pb.Snapshot) error {
	ms.Lock()
	defer ms.Unlock()
	snap = pb.EnsureSnapshot(snap)
	// A present index of 0 is no snapshot, or a ConfState alone, put there to
	// start a group: either gives way to anything.
	if have := ms.snapshot.GetMetadata().GetIndex(); have != 0 && have >= snap.GetMetadata().GetIndex() {
		return ErrSnapOutOfDate
	}
	ms.snapshot = cloneSnapshot(snap)
	ms.base = snapshotID(snap)
	ms.log = nil
	return nil
}

// CreateSnapshot makes the snapshot at index i, which must be in the log, with the
// host's data, and returns a copy. cs is the configuration at i; nil keeps the previous
// snapshot's. If the present snapshot is as new, the error is [ErrSnapOutOfDate]. The
// log stays as it is: see Compact.
func (ms *MemoryStorage) CreateSnapshot(i uint64, cs *pb.ConfState, data []byte) (*pb.Snapshot, error) {
	ms.Lock()
	defer ms.Unlock()
	if i <= ms.snapshot.GetMetadata().GetIndex() {
		return nil, ErrSnapOutOfDate
	}
	if i > ms.lastIndex() {
		getLogger().Panicf("raft: MemoryStorage.CreateSnapshot: index is %d, but the last index is %d", i, ms.lastIndex())
	}
	meta := pb.EnsureSnapshot(ms.snapshot).Metadata
	meta.Index, meta.Term = new(i), new(ms.termAt(i))
	if cs != nil {
		meta.ConfState = proto.Clone(cs).(*pb.ConfState)
	}
	ms.snapshot.Data = data
	return cloneSnapshot(ms.snapshot), nil
}

// Compact drops the entries up to compactIndex, which must have been applied. If the
// entries are gone already, the error is [ErrCompacted].
func (ms *MemoryStorage) Compact(compactIndex uint64) error {
	ms.Lock()
	defer ms.Unlock()
	if compactIndex <= ms.base.Index {
		return ErrCompacted
	}
	if compactIndex > ms.lastIndex() {
		getLogger().Panicf("raft: MemoryStorage.Compact: index is %d, but the last index is %d", compactIndex, ms.lastIndex())
	}
	base := ecraft.ID{Term: ms.termAt(compactIndex), Index: compactIndex}
	// A copy frees the dropped entries for collection.
	ms.log = slices.Clone(ms.log[compactIndex-ms.base.Index:])
	ms.base = base
	return nil
}

// Append adds consecutive entries, and replaces the log from the first new entry on;
// entries already compacted are left out. The error is always nil.
func (ms *MemoryStorage) Append(entries []*pb.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	ms.Lock()
	defer ms.Unlock()
	first, at := ms.base.Index+1, entries[0].GetIndex()
	if at+uint64(len(entries)) <= first {
		return nil
	}
	if at < first {
		entries, at = entries[first-at:], first
	}
	keep := at - first
	if keep > uint64(len(ms.log)) {
		getLogger().Panicf("raft: MemoryStorage.Append: first entry is %d, but the last index is %d", at, ms.lastIndex())
	}
	if keep < uint64(len(ms.log)) {
		ms.log = slices.Clip(ms.log[:keep]) // readers may still hold the dropped part
	}
	ms.log = append(ms.log, entries...)
	return nil
}

func cloneSnapshot(s *pb.Snapshot) *pb.Snapshot { return proto.Clone(s).(*pb.Snapshot) }
