// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// disk holds the durable writes of one side of a member: the library's own MemoryStorage, wrapped
// so that a test can vary the answers of a host's storage. A disk survives crashes; everything else
// in the member is lost in a crash.
type disk struct {
	memory
	lib library
	// busy makes Snapshot answer that the snapshot is not ready yet.
	busy bool
	// restored is the configuration of the state machine that the host has restored at a restart;
	// nil for the configuration of the latest snapshot.
	restored *pb.ConfState
	// roomy makes Entries return slices with room to append, as the contract allows: code that
	// appends to such a slice must own the room.
	roomy bool
	// short makes Entries return fewer entries than would fit, as the contract allows.
	short bool
	// racing is where a compaction is under way: Entries no longer has what it drops, and FirstIndex does not
	// say so yet. Nor has Term, unless between is set: then the compaction comes between the two questions.
	racing  uint64
	between bool
	// fault is the method that fails, if any.
	fault fault
}

// fault is a method of Storage that fails.
type fault string

const (
	sound         fault = ""
	failsState    fault = "InitialState"
	failsFirst    fault = "FirstIndex"
	failsLast     fault = "LastIndex"
	failsTerm     fault = "Term"
	failsEntries  fault = "Entries"
	failsSnapshot fault = "Snapshot"
	emptySnapshot fault = "Snapshot without an index"
	noSnapshot    fault = "Snapshot without a snapshot"
)

var errDisk = errors.New("the disk is broken")

// failing returns an error if the method fails.
func (d *disk) failing(method fault) error {
	if d.fault != method {
		return nil
	}
	return errDisk
}

func (d *disk) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, cs, err := d.memory.InitialState()
	if d.restored != nil {
		cs = proto.Clone(d.restored).(*pb.ConfState)
	}
	return hs, cs, errors.Join(err, d.failing(failsState))
}

func (d *disk) FirstIndex() (uint64, error) {
	i, err := d.memory.FirstIndex()
	return i, errors.Join(err, d.failing(failsFirst))
}

func (d *disk) LastIndex() (uint64, error) {
	i, err := d.memory.LastIndex()
	return i, errors.Join(err, d.failing(failsLast))
}

func (d *disk) Term(i uint64) (uint64, error) {
	if err := d.failing(failsTerm); err != nil {
		return 0, err
	}
	if i < d.racing && !d.between {
		return 0, d.lib.errCompacted
	}
	return d.memory.Term(i)
}

func (d *disk) Snapshot() (*pb.Snapshot, error) {
	switch {
	case d.busy:
		return nil, d.lib.errSnapshotLater
	case d.fault == emptySnapshot:
		return &pb.Snapshot{}, nil
	case d.fault == noSnapshot:
		return nil, nil
	case d.fault == failsSnapshot:
		return nil, errDisk
	}
	return d.memory.Snapshot()
}

func (d *disk) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if err := d.failing(failsEntries); err != nil {
		return nil, err
	}
	if lo <= d.racing {
		return nil, d.lib.errCompacted
	}
	ents, err := d.memory.Entries(lo, hi, maxSize)
	if n := uint64(len(ents)); d.short && n > 1 {
		n = 1 + lo%n
		ents = ents[:n:n]
	}
	if d.roomy && err == nil {
		ents = append(make([]*pb.Entry, 0, len(ents)+4), ents...)
	}
	return ents, err
}

// write makes the contents of a Ready or a MsgStorageAppend durable. A host writes all of the
// contents or, in a crash, nothing.
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

// commit returns the durable commit index.
func (d *disk) commit() uint64 {
	hs, _, _ := d.memory.InitialState() // a MemoryStorage returns no error here
	return hs.GetCommit()
}

// bounds returns the index before the first entry, of the last entry, and of
// the snapshot.
func (d *disk) bounds() (base, last, snapshot uint64) {
	first, _ := d.memory.FirstIndex() // a MemoryStorage returns no errors here
	last, _ = d.memory.LastIndex()
	s, _ := d.memory.Snapshot()
	return first - 1, last, s.GetMetadata().GetIndex()
}

// fingerprint covers the whole disk, but of the log only the last tail entries; 0 means the whole
// log.
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
	term, err := d.memory.Term(lo - 1)
	h.word(term)
	h.flag(err == nil)
	if lo <= last {
		ents, err := d.memory.Entries(lo, last+1, ^uint64(0))
		h.entries(ents)
		h.flag(err == nil)
	}
	return h
}
