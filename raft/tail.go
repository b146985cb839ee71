// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// tail is the end of the log: what Storage is not known to hold.
//
//	Storage: ... base | tail: entries[0] ... entries[handed-1] | entries[handed] ...
//	                          being written                      not yet in any Ready
//
// An incoming snapshot waits here too; it stands for everything up to its
// index, and entries may follow it. Entries stay in the tail until the host
// says that they are written, so that the log is always readable: either here
// or in Storage.
type tail struct {
	// base is the entry before entries[0]: the last one that Storage holds and
	// the tail does not replace, or the pending snapshot.
	//
	// Knowing its term here saves Storage a question on nearly every append.
	base entryID
	// entries[i] has index base.index+1+i.
	//
	// Invariant: what was handed out is not overwritten. Truncation makes a new
	// array.
	entries []*pb.Entry
	// handed is the number of entries that a Ready has carried.
	//
	// Invariant: 0 <= handed <= len(entries).
	handed int

	// snapshot is not nil while one waits to be written.
	//
	// Invariant: its index is at most base.index.
	snapshot *pb.Snapshot
	// snapshotHanded is set once a Ready has carried it.
	snapshotHanded bool
}

// last returns the end of the whole log.
func (t *tail) last() entryID {
	if n := len(t.entries); n > 0 {
		return idOf(t.entries[n-1])
	}
	return t.base
}

// term returns the term at i, where the tail knows it.
func (t *tail) term(i uint64) (uint64, bool) {
	switch {
	case i == t.base.index:
		return t.base.term, true
	case i > t.base.index && i-t.base.index <= uint64(len(t.entries)):
		return t.entries[i-t.base.index-1].GetTerm(), true
	case t.snapshot != nil && i == t.snapshot.GetMetadata().GetIndex():
		return t.snapshot.GetMetadata().GetTerm(), true
	}
	return 0, false
}

// slice returns the entries in [lo, hi), all of which must be in the tail.
func (t *tail) slice(lo, hi uint64) []*pb.Entry {
	first := t.base.index + 1
	return t.entries[lo-first : hi-first : hi-first]
}

// unhanded returns the entries that no Ready has carried.
func (t *tail) unhanded() []*pb.Entry {
	if t.handed == len(t.entries) {
		return nil
	}
	return slices.Clip(t.entries[t.handed:])
}

// unhandedSnapshot returns the snapshot that no Ready has carried, or nil.
func (t *tail) unhandedSnapshot() *pb.Snapshot {
	if t.snapshotHanded {
		return nil
	}
	return t.snapshot
}

// hand records that a Ready has carried everything.
func (t *tail) hand() {
	t.handed = len(t.entries)
	t.snapshotHanded = t.snapshot != nil
}

// append adds entries behind after, which must be in the tail or before it, and
// drops what followed after.
func (t *tail) append(after entryID, ents []*pb.Entry) {
	switch {
	case after.index < t.base.index || after.index == t.base.index && len(t.entries) > 0:
		// Nothing of the tail is left; the host will truncate Storage.
		t.base, t.entries, t.handed = after, slices.Clip(ents), 0
	default:
		keep := int(after.index - t.base.index)
		if keep < len(t.entries) {
			t.entries = slices.Clip(t.entries[:keep])
			t.handed = min(t.handed, keep)
		}
		t.entries = append(t.entries, ents...)
	}
}

// written drops what is now in Storage: the entries up to id. It does nothing
// if the tail does not hold id, as when the entries that were written have been
// replaced meanwhile.
func (t *tail) written(id entryID) {
	if id.index <= t.base.index {
		return
	}
	if have, ok := t.term(id.index); !ok || have != id.term {
		return
	}
	n := int(id.index - t.base.index)
	t.base = id
	t.handed = max(t.handed-n, 0)
	switch t.entries = t.entries[n:]; {
	case len(t.entries) == 0:
		t.entries = nil
	case cap(t.entries) > 2*len(t.entries):
		// Let go of the array, and with it of the entries before.
		t.entries = slices.Clone(t.entries)
	}
}

// replace makes the snapshot all there is.
func (t *tail) replace(s *pb.Snapshot) {
	*t = tail{base: snapshotID(s), snapshot: cloneSnapshot(s)}
}

// snapshotWritten drops the snapshot of that index; it is now in Storage.
func (t *tail) snapshotWritten(index uint64) {
	if t.snapshot != nil && t.snapshot.GetMetadata().GetIndex() == index {
		t.snapshot, t.snapshotHanded = nil, false
	}
}
