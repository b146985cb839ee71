// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/raft"
)

// Bounds of one [Write].
const (
	// MaxWriteBytes is the largest sum of encoded entries.
	MaxWriteBytes = maxBodyBytes
	// MaxWriteEntries is the largest number of entries.
	MaxWriteEntries = 1 << 20
	// MaxSnapshotBytes is the largest encoded snapshot, with its small body.
	MaxSnapshotBytes = 64 << 20
)

// Write is a group's write, with the parts as a Raft core hands them out: any part may
// be nil. A write survives a crash whole or not at all. The engine keeps the parts, so
// the caller must not change them any more; nor does the engine.
type Write struct {
	// Snapshot, received from a leader, replaces log and snapshot before Entries are
	// appended. If the present snapshot has an index above 0 and is as new, the error
	// is [raft.ErrSnapOutOfDate]. Data may be nil: the bodies of snapshots are the
	// host's, and must be durable before the write.
	Snapshot *pb.Snapshot

	// Entries are consecutive. Entries replace the log from their first index on, and
	// leave no gap; entries already compacted are left out.
	Entries []*pb.Entry

	// HardState is the state from now on. Term and commit index never go down,
	// and the vote of a term never changes, once there is one.
	HardState *pb.HardState

	// Lazy says that no caller waits for durability, for example if only the commit
	// index moved. A lazy write keeps its place in the order, but causes no sync, and
	// its callback runs once the file system has the write.
	Lazy bool
}

// stage checks w, puts it into effect in memory, and returns the record to write. The
// caller holds g.mu and the engine's lock, because writes must take effect in the order
// of writing.
func (g *Group) stage(w Write) (*record, error) {
	r, err := g.check(w)
	if err != nil {
		return nil, err
	}
	if s := r.installed; s != nil {
		g.snapshot = s
		g.log.reset(position{term: s.GetMetadata().GetTerm(), index: s.GetMetadata().GetIndex()})
	}
	if len(r.entries) > 0 {
		g.log.truncate(r.first)
		for i, e := range r.entries {
			g.log.slots = append(g.log.slots, slot{term: r.rows[i].term, size: r.rows[i].size, entry: e})
		}
	}
	if r.hardState != nil {
		g.hardState = r.hardState
	}
	return r, nil
}

// check returns the record for w, its rows complete except for the checksums, or w's
// mistake.
func (g *Group) check(w Write) (*record, error) {
	r := &record{}
	base, last, snap := g.log.base.index, g.log.last(), g.snapshot.GetMetadata().GetIndex()
	if s := w.Snapshot; s != nil {
		index := s.GetMetadata().GetIndex()
		if snap != 0 && index <= snap {
			return nil, fmt.Errorf("%w: group %d has the snapshot of index %d, got %d", raft.ErrSnapOutOfDate, g.id, snap, index)
		}
		if index == math.MaxUint64 {
			return nil, g.invalid("Snapshot has index %d, the highest is %d", index, uint64(math.MaxUint64-1))
		}
		if n := proto.Size(s); n > MaxSnapshotBytes {
			return nil, g.invalid("Snapshot has %d bytes, the bound is %d: keep the body in the host", n, MaxSnapshotBytes)
		}
		r.installed, base, last = ownSnapshot(s.GetMetadata(), s.GetData()), index, index
	}
	if err := g.checkEntries(w.Entries, base, last, r); err != nil {
		return nil, err
	}
	if w.HardState != nil {
		if err := g.checkHardState(w.HardState); err != nil {
			return nil, err
		}
		r.hardState = w.HardState
	}
	return r, nil
}

// checkEntries puts entries into r, if they fit a log from base to last.
func (g *Group) checkEntries(entries []*pb.Entry, base, last uint64, r *record) error {
	if len(entries) == 0 {
		return nil
	}
	if len(entries) > MaxWriteEntries {
		return g.invalid("%d entries in one write, the bound is %d", len(entries), MaxWriteEntries)
	}
	first := entries[0].GetIndex()
	if first == 0 || first > last+1 {
		return g.invalid("Entries begin at index %d, the log ends at %d", first, last)
	}
	if n := uint64(len(entries)); first > math.MaxUint64-n { // which would leave no index behind the log
		return g.invalid("%d Entries from index %d on, the highest index is %d", n, first, uint64(math.MaxUint64-1))
	}
	bytes, rows := 0, make([]row, len(entries))
	for i, e := range entries {
		if e == nil || e.GetIndex() != first+uint64(i) {
			return g.invalid("entry %d has index %d, want %d", i, e.GetIndex(), first+uint64(i))
		}
		if i > 0 && e.GetTerm() < entries[i-1].GetTerm() {
			return g.invalid("entry %d has term %d behind term %d", e.GetIndex(), e.GetTerm(), entries[i-1].GetTerm())
		}
		size := encoded.Size(e)
		if bytes += size; bytes > MaxWriteBytes {
			return g.invalid("more than %d bytes of entries in one write", MaxWriteBytes)
		}
		rows[i] = row{term: e.GetTerm(), size: uint32(size)}
	}
	if first <= base {
		old := min(base+1-first, uint64(len(entries)))
		entries, rows, first = entries[old:], rows[old:], base+1
	}
	if len(entries) > 0 {
		r.first, r.entries, r.rows = first, entries, rows
	}
	return nil
}

func (g *Group) checkHardState(hs *pb.HardState) error {
	have := g.hardState
	switch {
	case hs.GetTerm() < have.GetTerm():
		return g.invalid("HardState.Term goes from %d back to %d", have.GetTerm(), hs.GetTerm())
	case hs.GetTerm() == have.GetTerm() && have.GetVote() != 0 && hs.GetVote() != have.GetVote():
		return g.invalid("HardState.Vote changes in term %d from %d to %d", hs.GetTerm(), have.GetVote(), hs.GetVote())
	case hs.GetCommit() < have.GetCommit():
		return g.invalid("HardState.Commit goes from %d back to %d", have.GetCommit(), hs.GetCommit())
	}
	return nil
}

func (g *Group) invalid(format string, args ...any) error {
	return fmt.Errorf("%w write to group %d: %s", ErrInvalid, g.id, fmt.Sprintf(format, args...))
}

// stageSnapshot records the host's snapshot, in memory and for the log.
func (g *Group) stageSnapshot(meta *pb.SnapshotMetadata, data []byte) (*record, error) {
	index, have := meta.GetIndex(), g.snapshot.GetMetadata().GetIndex()
	if index <= have {
		return nil, fmt.Errorf("%w: group %d has the snapshot of index %d, got %d", raft.ErrSnapOutOfDate, g.id, have, index)
	}
	if index < g.log.base.index || index > g.log.last() {
		return nil, g.invalid("snapshot of index %d, the log has %d to %d", index, g.log.base.index, g.log.last())
	}
	if term := g.log.termAt(index); meta.GetTerm() != 0 && meta.GetTerm() != term {
		return nil, g.invalid("snapshot of index %d has term %d, the log's is %d", index, meta.GetTerm(), term)
	}
	s := ownSnapshot(meta, data)
	s.Metadata.Term = new(g.log.termAt(index))
	if meta.ConfState == nil {
		s.Metadata.ConfState = g.snapshot.GetMetadata().GetConfState()
	}
	if n := proto.Size(s); n > MaxSnapshotBytes {
		return nil, g.invalid("snapshot has %d bytes, the bound is %d: keep the body in the host", n, MaxSnapshotBytes)
	}
	g.snapshot = s
	return &record{recorded: s}, nil
}

// ownSnapshot returns a snapshot whose metadata is complete and a copy, while
// the body is shared.
func ownSnapshot(meta *pb.SnapshotMetadata, data []byte) *pb.Snapshot {
	s := &pb.Snapshot{Data: data}
	if meta != nil {
		s.Metadata = proto.Clone(meta).(*pb.SnapshotMetadata)
	}
	return pb.EnsureSnapshot(s)
}

// stageCompact drops the entries up to index, in memory and for the log.
func (g *Group) stageCompact(index uint64) (*record, error) {
	switch snap := g.snapshot.GetMetadata().GetIndex(); {
	case index <= g.log.base.index:
		return nil, raft.ErrCompacted
	case index > g.log.last():
		return nil, g.invalid("compaction to index %d, the log ends at %d", index, g.log.last())
	case index > snap:
		return nil, g.invalid("compaction to index %d, the snapshot's is %d: call SetSnapshot first", index, snap)
	}
	p := position{term: g.log.termAt(index), index: index}
	g.log.compact(p)
	return &record{base: &p}, nil
}
