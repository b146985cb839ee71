// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// slot is memory's record of one entry of a log. 40 bytes: a million entries behind the
// last compaction cost 40 MB.
type slot struct {
	term uint64
	// seg and off are the place of the encoded entry; seg is nil until the entry is
	// written.
	seg  *segment
	off  uint32
	size uint32 // of the encoding, on disk and as Raft counts it
	crc  uint32 // valid once seg is set
	// entry is nil if it must be read from the segment.
	// Invariant: entry != nil || seg != nil.
	entry *pb.Entry
}

// written notes the place of the slot's entry in a segment.
func (s *slot) written(seg *segment, off uint32, crc uint32) {
	s.seg, s.off, s.crc = seg, off, crc
	seg.live.Add(int64(s.size))
}

// dropped notes that no group needs the slot's place on disk any more.
func (s *slot) dropped() {
	if s.seg != nil {
		s.seg.live.Add(-int64(s.size))
	}
}

// memLog is the log of one group in memory.
type memLog struct {
	// base is the place before the first entry: the last compacted entry, or the snapshot.
	base position
	// slots[i] is the entry base.index+1+i. Slots may be changed in place, because
	// readers copy them.
	slots []slot
}

func (l *memLog) first() uint64 { return l.base.index + 1 }
func (l *memLog) last() uint64  { return l.base.index + uint64(len(l.slots)) }

// at returns the slot of an index in [first, last].
func (l *memLog) at(index uint64) *slot { return &l.slots[index-l.base.index-1] }

// has reports whether the log has an entry at the index.
func (l *memLog) has(index uint64) bool { return index > l.base.index && index <= l.last() }

// termAt returns the term at an index in [base.index, last].
func (l *memLog) termAt(index uint64) uint64 {
	if index == l.base.index {
		return l.base.term
	}
	return l.at(index).term
}

// truncate drops the entries from index on.
func (l *memLog) truncate(index uint64) {
	if index > l.last() {
		return
	}
	keep := index - l.first()
	dropAll(l.slots[keep:])
	l.slots = l.slots[:keep]
}

// compact drops the entries up to p.
func (l *memLog) compact(p position) {
	n := p.index - l.base.index
	dropAll(l.slots[:n])
	l.slots = l.slots[n:]
	// The array still holds the dropped part. Copying frees it once the dropped part is
	// the larger, so that copying stays cheaper than appending was.
	if n > uint64(len(l.slots)) {
		l.slots = slices.Clone(l.slots)
	}
	l.base = p
}

// reset drops everything: the log begins behind p.
func (l *memLog) reset(p position) {
	dropAll(l.slots)
	l.slots, l.base = nil, p
}

func dropAll(slots []slot) {
	for i := range slots {
		slots[i].dropped()
		slots[i] = slot{}
	}
}
