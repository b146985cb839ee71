// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// tail is the end of the log not known to be in Storage.
//
//	Storage: ... base | tail: entries[0] ... entries[handed-1] | entries[handed] ...
//	                          being written                      not yet in any Ready
//
// An incoming snapshot waits here too: it stands for everything up to its index, and
// entries may follow. Entries stay in the tail until the host reports them written, so
// that every entry is readable, either here or in Storage.
type tail struct {
	// base is the entry before entries[0]: the last entry of Storage not replaced by
	// the tail, or the pending snapshot.
	//
	// Knowing its term here saves Storage a question on nearly every append.
	base ecraft.ID
	// entries[i] has index base.index+1+i.
	//
	// Invariant: entries handed out are not overwritten. Truncation makes a new array.
	entries []*pb.Entry
	// handed is the number of entries carried by a Ready.
	//
	// Invariant: 0 <= handed <= len(entries).
	handed int

	// snapshot is the snapshot to be written, or nil.
	//
	// Invariant: its index is at most base.index.
	snapshot *pb.Snapshot
	// snapshotHanded is set once a Ready has carried the snapshot.
	snapshotHanded bool
	// waited counts the ticks for which something was handed out and nothing was written:
	// see late.go.
	waited uint32
}

// last returns the end of the whole log.
func (t *tail) last() ecraft.ID {
	if n := len(t.entries); n > 0 {
		return idOf(t.entries[n-1])
	}
	return t.base
}

// term returns the term at i, where the tail knows it.
func (t *tail) term(i uint64) (uint64, bool) {
	switch {
	case i == t.base.Index:
		return t.base.Term, true
	case i > t.base.Index && i-t.base.Index <= uint64(len(t.entries)):
		return t.entries[i-t.base.Index-1].GetTerm(), true
	case t.snapshot != nil && i == t.snapshot.GetMetadata().GetIndex():
		return t.snapshot.GetMetadata().GetTerm(), true
	}
	return 0, false
}

// slice returns the entries in [lo, hi), all of which must be in the tail.
func (t *tail) slice(lo, hi uint64) []*pb.Entry {
	first := t.base.Index + 1
	return t.entries[lo-first : hi-first : hi-first]
}

// unhanded returns the entries not yet carried by a Ready.
func (t *tail) unhanded() []*pb.Entry {
	if t.handed == len(t.entries) {
		return nil
	}
	return slices.Clip(t.entries[t.handed:])
}

// unhandedSnapshot returns the snapshot not yet carried by a Ready, or nil.
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

// append replaces the entries behind after, which must be in the tail or before.
func (t *tail) append(after ecraft.ID, ents []*pb.Entry) {
	switch {
	case after.Index < t.base.Index || after.Index == t.base.Index && len(t.entries) > 0:
		// Nothing of the tail is left; the host will truncate Storage.
		t.base, t.entries, t.handed, t.waited = after, slices.Clip(ents), 0, 0
	default:
		keep := int(after.Index - t.base.Index)
		if keep < len(t.entries) {
			t.entries = slices.Clip(t.entries[:keep])
			t.handed = min(t.handed, keep)
		}
		t.entries = append(t.entries, ents...)
	}
}

// written drops the entries up to id, now in Storage. If the tail does not hold id,
// because other entries have replaced the written ones meanwhile, written does nothing.
func (t *tail) written(id ecraft.ID) {
	if id.Index <= t.base.Index {
		return
	}
	if have, ok := t.term(id.Index); !ok || have != id.Term {
		return
	}
	n := int(id.Index - t.base.Index)
	t.base, t.waited = id, 0
	t.handed = max(t.handed-n, 0)
	switch t.entries = t.entries[n:]; {
	case len(t.entries) == 0:
		t.entries = nil
	case cap(t.entries) > 2*len(t.entries):
		// A smaller array frees the entries before.
		t.entries = slices.Clone(t.entries)
	}
}

// replace makes the snapshot all there is. It stays the message's: its data may be the whole state of a host.
func (t *tail) replace(s *pb.Snapshot) {
	*t = tail{base: snapshotID(s), snapshot: s}
}

// snapshotWritten drops the snapshot of that index, now in Storage.
func (t *tail) snapshotWritten(index uint64) {
	if t.snapshot != nil && t.snapshot.GetMetadata().GetIndex() == index {
		t.snapshot, t.snapshotHanded = nil, false
	}
}
