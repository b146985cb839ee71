// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// A disk is a stream of records. Writing adds records; a sync makes the records
// written before its begin durable. The node sees all its writes. A crash of
// the machine leaves the durable records and a prefix of the rest: so a write
// of several entries can be torn, and a hard state can vanish while the entries
// written with the state stay; unless the host writes atomically.
//
// There is no third way. A hard state written before the entries, and outliving
// the entries, has a commit index that covers entries lost in the crash, while
// older, never committed entries are in their place.

// hardState is pb.HardState as a value.
type hardState struct{ term, vote, commit uint64 }

func hardStateOf(hs *pb.HardState) hardState {
	return hardState{term: hs.GetTerm(), vote: hs.GetVote(), commit: hs.GetCommit()}
}

func (h hardState) proto() *pb.HardState {
	return &pb.HardState{Term: &h.term, Vote: &h.vote, Commit: &h.commit}
}

// record is one of: an entry, a hard state, a snapshot sent by another node, a
// checkpoint of this node's own state machine, a cut of the log's head.
type record struct {
	entry      *pb.Entry
	state      *hardState
	snapshot   *pb.Snapshot
	checkpoint *pb.Snapshot
	cut        uint64 // entries up to the index go
	// more says that the next record belongs to the same atomic write: both
	// survive a crash, or neither.
	more bool
}

// image is what a stream of records amounts to.
type image struct {
	state hardState
	// checkpoint is the state machine's; the node restarts from it.
	checkpoint *pb.Snapshot
	// baseIndex and baseTerm name the entry before the first.
	//
	// Invariant: baseIndex <= checkpoint's index <= last index.
	baseIndex, baseTerm uint64
	entries             []*pb.Entry
}

func (im *image) last() uint64 { return im.baseIndex + uint64(len(im.entries)) }

// term returns the term of entry i, and whether it is known.
func (im *image) term(i uint64) (uint64, bool) {
	switch {
	case i == im.baseIndex:
		return im.baseTerm, true
	case i < im.baseIndex || i > im.last():
		return 0, false
	}
	return im.entries[i-im.baseIndex-1].GetTerm(), true
}

// holds reports whether the image has entry i of the term, or covers it.
func (im *image) holds(i, term uint64) bool {
	if i < im.baseIndex {
		return true // cut off, so applied, so committed
	}
	t, ok := im.term(i)
	return ok && t == term
}

func (im *image) play(r record) {
	switch {
	case r.entry != nil:
		at := r.entry.GetIndex() - im.baseIndex - 1
		im.entries = append(im.entries[:at], r.entry)
	case r.state != nil:
		im.state = *r.state
	case r.snapshot != nil:
		meta := r.snapshot.GetMetadata()
		im.checkpoint = r.snapshot
		im.baseIndex, im.baseTerm, im.entries = meta.GetIndex(), meta.GetTerm(), nil
	case r.checkpoint != nil:
		im.checkpoint = r.checkpoint
	case r.cut > im.baseIndex:
		term, _ := im.term(r.cut)
		im.entries = append([]*pb.Entry(nil), im.entries[r.cut-im.baseIndex:]...)
		im.baseIndex, im.baseTerm = r.cut, term
	}
}

func (im *image) clone() image {
	c := *im
	c.entries = append([]*pb.Entry(nil), im.entries...)
	return c
}

// disk is a node's stable storage, and its [raft.Storage].
type disk struct {
	live, durable image
	// pending is the records written and not yet synced, in order.
	//
	// Invariant: live is durable with pending played to it.
	pending []record
	// replaced is the durable entries replaced by later entries, with the term of
	// the later.
	replaced map[entryName]uint64
	// synced counts the records made durable.
	synced int
	// snapshotBusy says that the next snapshot asked for has yet to be made.
	snapshotBusy func() bool
	// asked, if set, hears of a request for a snapshot: a host able to make a
	// newer snapshot begins, and reports whether there is no snapshot until
	// then.
	asked func() (busy bool)
}

func newDisk(first *pb.Snapshot, snapshotBusy func() bool) *disk {
	d := &disk{snapshotBusy: snapshotBusy}
	if first != nil {
		// The founding members get the snapshot before their first run.
		d.live.play(record{snapshot: first})
		d.live.play(record{state: &hardState{
			term: first.GetMetadata().GetTerm(), commit: first.GetMetadata().GetIndex()}})
		d.durable = d.live.clone()
	}
	return d
}

func (d *disk) write(r record) {
	d.live.play(r)
	d.pending = append(d.pending, r)
}

// sync makes the first n of the pending records durable.
func (d *disk) sync(n int) {
	for _, r := range d.pending[:n] {
		d.noteReplaced(r.entry)
		d.durable.play(r)
	}
	d.pending = append(d.pending[:0], d.pending[n:]...)
	d.synced += n
}

// noteReplaced notes the entry replaced by a newly durable entry.
func (d *disk) noteReplaced(e *pb.Entry) {
	if e == nil || e.GetIndex() > d.durable.last() {
		return
	}
	if d.replaced == nil {
		d.replaced = map[entryName]uint64{}
	}
	for _, old := range d.durable.entries[e.GetIndex()-d.durable.baseIndex-1:] {
		d.replaced[entryName{old.GetIndex(), old.GetTerm()}] = e.GetTerm()
	}
}

// crash loses the pending records but for a prefix. It reports whether a write
// of entries was torn.
func (d *disk) crash(keep int) (torn bool) {
	for keep > 0 && d.pending[keep-1].more {
		keep--
	}
	torn = 0 < keep && keep < len(d.pending) && d.pending[keep-1].entry != nil && d.pending[keep].entry != nil
	d.sync(keep)
	d.pending = d.pending[:0]
	d.live = d.durable.clone()
	return torn
}

// recover brings the commit index in line with the rest, as a host does that
// finds them apart after a crash: the state machine applies only what is
// committed, so the index is at least the checkpoint's.
func (d *disk) recover() {
	hs := d.live.state
	hs.commit = max(hs.commit, d.live.checkpoint.GetMetadata().GetIndex())
	if hs != d.live.state {
		d.write(record{state: &hs})
	}
}

// InitialState implements [raft.Storage]: the configuration is that of the
// checkpoint, which the node is told to have applied.
func (d *disk) InitialState() (*pb.HardState, *pb.ConfState, error) {
	conf := d.live.checkpoint.GetMetadata().GetConfState()
	if conf == nil {
		conf = &pb.ConfState{}
	}
	return d.live.state.proto(), proto.Clone(conf).(*pb.ConfState), nil
}

// Entries implements [raft.Storage].
func (d *disk) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	switch {
	case lo <= d.live.baseIndex:
		return nil, raft.ErrCompacted
	case hi > d.live.last()+1:
		return nil, fmt.Errorf("entries [%d, %d) of a log that ends at %d: %w", lo, hi, d.live.last(), raft.ErrUnavailable)
	}
	from := d.live.entries[lo-d.live.baseIndex-1 : hi-d.live.baseIndex-1]
	size, n := uint64(0), 0
	for _, e := range from {
		size += uint64(proto.Size(e))
		if n > 0 && size > maxSize {
			break
		}
		n++
	}
	return append([]*pb.Entry(nil), from[:n]...), nil
}

// Term implements [raft.Storage].
func (d *disk) Term(i uint64) (uint64, error) {
	if i < d.live.baseIndex {
		return 0, raft.ErrCompacted
	}
	if t, ok := d.live.term(i); ok {
		return t, nil
	}
	return 0, raft.ErrUnavailable
}

// LastIndex implements [raft.Storage].
func (d *disk) LastIndex() (uint64, error) { return d.live.last(), nil }

// FirstIndex implements [raft.Storage].
func (d *disk) FirstIndex() (uint64, error) { return d.live.baseIndex + 1, nil }

// Snapshot implements [raft.Storage]: the latest checkpoint.
func (d *disk) Snapshot() (*pb.Snapshot, error) {
	if d.asked != nil && d.asked() || d.live.checkpoint == nil || d.snapshotBusy() {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return d.live.checkpoint, nil
}

type entryName struct{ index, term uint64 }

func (e entryName) id() ecraft.ID { return ecraft.ID{Index: e.index, Term: e.term} }
