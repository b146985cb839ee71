// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"hash/crc32"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Entries read from disk are fetched in runs: neighbours in a segment, with at
// most readGapBytes of other data between them, in one read of at most
// readRunBytes, or one entry.
const (
	readGapBytes = 16 << 10
	readRunBytes = 1 << 20
)

// Entries implements raft.Storage. Recent entries come from memory, the others from
// disk, with each entry checked against its checksum: a [DamageError] names the first
// mismatch.
func (g *Group) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	for {
		slots, err := g.slots(lo, hi, maxSize)
		if err != nil {
			return nil, err
		}
		entries, err := g.fetch(lo, slots)
		if !errors.Is(err, errGone) {
			return entries, err
		}
		// A segment was purged between the two steps. Its live entries were written
		// again before, so the slots have the new places.
		if g.e.closed() {
			return nil, ErrClosed
		}
	}
}

// slots copies the slots of a prefix of [lo, hi): at most maxSize encoded bytes, but at
// least one entry.
func (g *Group) slots(lo, hi, maxSize uint64) ([]slot, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	switch {
	case lo < g.log.first():
		return nil, raft.ErrCompacted
	case hi > g.log.last()+1 || lo > hi || len(g.log.slots) == 0:
		return nil, raft.ErrUnavailable
	case lo == hi:
		return nil, nil
	}
	all := g.log.slots[lo-g.log.first() : hi-g.log.first()]
	var size uint64
	for i := range all {
		if size += uint64(all[i].size); size > maxSize && i > 0 {
			all = all[:i]
			break
		}
	}
	return slices.Clone(all), nil
}

// fetch returns the entries of slots, the first of which has index lo.
func (g *Group) fetch(lo uint64, slots []slot) ([]*pb.Entry, error) {
	entries := make([]*pb.Entry, len(slots))
	for i := 0; i < len(slots); {
		if e := slots[i].entry; e != nil {
			entries[i] = e
			i++
			continue
		}
		n := runLen(slots[i:])
		if err := g.readRun(lo+uint64(i), slots[i:i+n], entries[i:i+n]); err != nil {
			return nil, err
		}
		i += n
	}
	return entries, nil
}

// runLen returns how many slots, from the first on, to read at once.
func runLen(slots []slot) int {
	start := int64(slots[0].off)
	end := start + int64(slots[0].size)
	n := 1
	for ; n < len(slots); n++ {
		s := &slots[n]
		if s.entry != nil || s.seg != slots[0].seg ||
			int64(s.off) < end || int64(s.off) > end+readGapBytes ||
			int64(s.off)+int64(s.size) > start+readRunBytes {
			break
		}
		end = int64(s.off) + int64(s.size)
	}
	return n
}

// runBuffers are for reading: decoding copies the bytes of entries.
var runBuffers = sync.Pool{New: func() any { return new([]byte) }}

// readRun reads the entries of slots, the first of which has index lo.
func (g *Group) readRun(lo uint64, slots []slot, entries []*pb.Entry) error {
	buf := runBuffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= readRunBytes {
			runBuffers.Put(buf)
		}
	}()
	b, err := g.readRaw(lo, slots, (*buf)[:0])
	if err != nil {
		return err
	}
	*buf = b
	start := slots[0].off
	for i := range slots {
		s := &slots[i]
		e := &pb.Entry{}
		if err := proto.Unmarshal(b[s.off-start:][:s.size], e); err != nil || e.GetIndex() != lo+uint64(i) || e.GetTerm() != s.term {
			return g.damage(s, lo+uint64(i), "the entry is not the one that belongs there")
		}
		entries[i] = e
	}
	return nil
}

// readRaw reads the bytes from the first slot to the last, all in one segment
// and in order, and checks each entry's sum.
func (g *Group) readRaw(lo uint64, slots []slot, buf []byte) ([]byte, error) {
	start, end := slots[0].off, slots[len(slots)-1].off+slots[len(slots)-1].size
	buf = slices.Grow(buf, int(end-start))[:end-start]
	if err := slots[0].seg.readAt(buf, int64(start)); err != nil {
		return nil, err
	}
	for i := range slots {
		s := &slots[i]
		if crc32.Checksum(buf[s.off-start:][:s.size], castagnoli) != s.crc {
			return nil, g.damage(s, lo+uint64(i), "the checksum of the entry does not match")
		}
	}
	g.e.count.readBytes.Add(uint64(len(buf)))
	g.e.count.readEntries.Add(uint64(len(slots)))
	return buf, nil
}

func (g *Group) damage(s *slot, index uint64, reason string) error {
	return &DamageError{Segment: s.seg.number, Offset: int64(s.off), Group: g.id, Index: index, Reason: reason}
}
