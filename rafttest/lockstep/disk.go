// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// disk is what one side of a member has written: the library's own
// MemoryStorage, and around it what a host's storage may also do. It survives
// crashes; whatever was not written to it does not.
type disk struct {
	memory
	lib library
	// busy makes Snapshot answer that it is still being made.
	busy bool
	// restored is the configuration of the state machine that the host has
	// restored at a restart. nil: that of the latest snapshot.
	restored *pb.ConfState
	// roomy makes Entries return slices with room to append, as the contract
	// allows: whoever appends must own the room.
	roomy bool
}

func (d *disk) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, cs, err := d.memory.InitialState()
	if d.restored != nil {
		cs = proto.Clone(d.restored).(*pb.ConfState)
	}
	return hs, cs, err
}

func (d *disk) Snapshot() (*pb.Snapshot, error) {
	if d.busy {
		return nil, d.lib.errSnapshotLater()
	}
	return d.memory.Snapshot()
}

func (d *disk) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	ents, err := d.memory.Entries(lo, hi, maxSize)
	if d.roomy && err == nil {
		ents = append(make([]*pb.Entry, 0, len(ents)+4), ents...)
	}
	return ents, err
}

// write makes durable what a Ready or a MsgStorageAppend asks for. A host
// writes all of it or, if it crashes, nothing.
func (d *disk) write(hs *pb.HardState, ents []*pb.Entry, snap *pb.Snapshot) error {
	var err error
	if !d.lib.isEmptySnap(snap) {
		err = d.ApplySnapshot(snap)
		d.restored = nil
	}
	if len(ents) > 0 && err == nil {
		err = d.Append(ents)
	}
	if !d.lib.isEmptyHardState(hs) && err == nil {
		err = d.SetHardState(hs)
	}
	return err
}

// commit returns the commit index that is durable.
func (d *disk) commit() uint64 {
	hs, _, _ := d.memory.InitialState() // a MemoryStorage returns no error here
	return hs.GetCommit()
}

// bounds returns the index before the first entry, of the last entry, and of
// the snapshot.
func (d *disk) bounds() (base, last, snapshot uint64) {
	first, _ := d.FirstIndex() // a MemoryStorage returns no errors here
	last, _ = d.LastIndex()
	s, _ := d.memory.Snapshot()
	return first - 1, last, s.GetMetadata().GetIndex()
}

// fingerprint covers everything that is on the disk. Of the log it covers the
// last tail entries; 0 means all.
func (d *disk) fingerprint(tail uint64) fingerprint {
	var h fingerprint
	hs, cs, err := d.memory.InitialState()
	h.hardState(hs)
	h.confState(cs)
	h.flag(err == nil)
	s, err := d.memory.Snapshot()
	h.snapshot(s)
	h.flag(err == nil)
	base, last, _ := d.bounds()
	h.word(base)
	h.word(last)
	lo := base + 1
	if tail > 0 && last > tail {
		lo = max(lo, last-tail)
	}
	term, err := d.Term(lo - 1)
	h.word(term)
	h.flag(err == nil)
	if lo <= last {
		ents, err := d.memory.Entries(lo, last+1, ^uint64(0))
		h.entries(ents)
		h.flag(err == nil)
	}
	return h
}
