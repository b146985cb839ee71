// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"maps"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// disk is a machine's stable storage: a stream of records. A written record is
// seen at once; a sync makes the records written before durable. A crash leaves
// the durable records and a prefix of the rest.
//
// It is also the core's [raft.Storage].
type disk struct {
	live, durable image
	// pending are the records not yet synced.
	//
	// Invariant: live is durable with pending played to it.
	pending []record
	// inline, if set, gives back a loaded entry the payload that the host took
	// out at the append.
	inline func(*pb.Entry) *pb.Entry
}

// record is an atomic write.
type record struct {
	play func(*image)
	// entries is the number of entries appended.
	entries int
}

// image is the result of records.
type image struct {
	hard hardState
	// base is the entry before the first.
	//
	// Invariant: base <= state.at <= last.
	base    position
	entries []*pb.Entry
	// state is from where the host restarts.
	state state
	// files are payloads outside the log.
	files map[position][]byte
}

type hardState struct{ term, vote, commit uint64 }

func hardStateOf(hs *pb.HardState) hardState {
	return hardState{hs.GetTerm(), hs.GetVote(), hs.GetCommit()}
}

func (im *image) last() uint64 { return im.base.index + uint64(len(im.entries)) }

// term returns the term of an entry, or 0 if the image does not have it.
func (im *image) term(index uint64) uint64 {
	switch {
	case index == im.base.index:
		return im.base.term
	case index < im.base.index || index > im.last():
		return 0
	}
	return im.entries[index-im.base.index-1].GetTerm()
}

// append replaces the log from the index of the first new entry on. That index is
// at most one above the log's last.
func (im *image) append(entries []*pb.Entry) {
	if len(entries) > 0 {
		im.entries = append(im.entries[:entries[0].GetIndex()-im.base.index-1], entries...)
	}
}

// truncate drops entries up to an index that is applied.
func (im *image) truncate(index uint64) {
	if index <= im.base.index {
		return
	}
	term := im.term(index)
	im.entries = append([]*pb.Entry(nil), im.entries[index-im.base.index:]...)
	im.base = position{index, term}
	maps.DeleteFunc(im.files, func(p position, _ []byte) bool { return p.index <= index })
}

// restore replaces everything by a state.
func (im *image) restore(s state) {
	im.base, im.entries, im.state = s.at, nil, s
	im.hard.commit = max(im.hard.commit, s.at.index)
	clear(im.files)
}

func (im *image) clone() image {
	c := *im
	c.entries = append([]*pb.Entry(nil), im.entries...)
	c.files = maps.Clone(im.files)
	return c
}

// newDisk returns the disk of a founder, or an empty one if conf is nil.
func newDisk(conf *pb.ConfState) *disk {
	im := image{files: map[position][]byte{}}
	im.state.conf = &pb.ConfState{}
	if conf != nil {
		im.state.at, im.state.conf = position{1, 1}, conf
		im.base, im.hard = im.state.at, hardState{term: 1, commit: 1}
	}
	return &disk{live: im.clone(), durable: im}
}

// write plays a record to the live image.
func (d *disk) write(r record) {
	r.play(&d.live)
	d.pending = append(d.pending, r)
}

// sync makes the first n of the pending records durable.
func (d *disk) sync(n int) {
	for _, r := range d.pending[:n] {
		r.play(&d.durable)
	}
	d.pending = append(d.pending[:0], d.pending[n:]...)
}

// crash loses the pending records, but for the first keep, and reports whether
// the loss tore an append.
func (d *disk) crash(keep int) (torn bool) {
	torn = 0 < keep && keep < len(d.pending) && d.pending[keep-1].entries > 0 && d.pending[keep].entries > 0
	d.sync(keep)
	d.pending = d.pending[:0]
	d.live = d.durable.clone()
	return torn
}

// InitialState implements [raft.Storage].
func (d *disk) InitialState() (*pb.HardState, *pb.ConfState, error) {
	h := d.live.hard
	return &pb.HardState{Term: &h.term, Vote: &h.vote, Commit: &h.commit}, proto.Clone(d.live.state.conf).(*pb.ConfState), nil
}

// Entries implements [raft.Storage].
func (d *disk) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	switch base := d.live.base.index; {
	case lo <= base:
		return nil, raft.ErrCompacted
	case hi > d.live.last()+1:
		return nil, raft.ErrUnavailable
	default:
		var out []*pb.Entry
		size := uint64(0)
		for _, e := range d.live.entries[lo-base-1 : hi-base-1] {
			if d.inline != nil {
				e = d.inline(e)
			}
			if size += uint64(proto.Size(e)); len(out) > 0 && size > maxSize {
				break
			}
			out = append(out, e)
		}
		return out, nil
	}
}

// Term implements [raft.Storage].
func (d *disk) Term(i uint64) (uint64, error) {
	switch {
	case i < d.live.base.index:
		return 0, raft.ErrCompacted
	case i > d.live.last():
		return 0, raft.ErrUnavailable
	}
	return d.live.term(i), nil
}

// LastIndex implements [raft.Storage].
func (d *disk) LastIndex() (uint64, error) { return d.live.last(), nil }

// FirstIndex implements [raft.Storage].
func (d *disk) FirstIndex() (uint64, error) { return d.live.base.index + 1, nil }

// Snapshot implements [raft.Storage]: a snapshot's place. The host makes the
// snapshot to send at the time of sending.
func (d *disk) Snapshot() (*pb.Snapshot, error) { return d.live.state.snapshot(), nil }
