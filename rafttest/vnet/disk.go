// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// disk writes one batch at a time: all work waiting at the end of the batch
// before.
type disk struct {
	n       *node
	waiting []*pb.Message
	busy    bool
}

// write takes a MsgStorageAppend.
func (d *disk) write(m *pb.Message) {
	d.waiting = append(d.waiting, m)
	if !d.busy {
		d.sync()
	}
}

func (d *disk) sync() {
	batch := d.waiting
	d.waiting, d.busy = nil, true
	took := d.time(batch)
	if took == 0 {
		d.done(batch)
		return
	}
	d.n.later(took, func() { d.done(batch) })
}

// time returns the time of a batch. Work without an answer need not be durable.
func (d *disk) time(batch []*pb.Message) time.Duration {
	hw, took := d.n.hardware, time.Duration(0)
	size, must := 0, false
	for _, m := range batch {
		must = must || len(m.GetResponses()) > 0
		for _, e := range m.GetEntries() {
			size += len(e.GetData())
		}
	}
	if must {
		took += hw.Sync
	}
	if hw.Disk > 0 {
		took += time.Duration(float64(size) / hw.Disk * float64(time.Second))
	}
	return took
}

// done makes a batch durable and says so.
func (d *disk) done(batch []*pb.Message) {
	for _, m := range batch {
		d.n.keep(m)
	}
	for _, m := range batch {
		d.n.deliver(m.GetResponses())
	}
	d.busy = false
	if len(d.waiting) > 0 {
		d.sync()
	}
}

// clear forgets the data not yet durable.
func (d *disk) clear() { d.waiting, d.busy = nil, false }

// keep stores the content of a MsgStorageAppend.
func (n *node) keep(m *pb.Message) {
	if m.Term != nil { // all of the hard state, or nothing
		n.must(n.store.SetHardState(&pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}))
	}
	if s := m.GetSnapshot(); !raft.IsEmptySnap(s) {
		n.must(n.store.ApplySnapshot(s))
		n.applied = s.GetMetadata().GetIndex()
		n.digest = binary.LittleEndian.Uint32(s.GetData())
		n.mark, n.sinceMark = n.applied, 0
		n.c.compare(n)
		n.c.snapshots++
	}
	n.must(n.store.Append(m.GetEntries()))
	if n.c.opts.OnDurable != nil && len(m.GetEntries()) > 0 {
		n.c.opts.OnDurable(n.id, m.GetEntries())
	}
}

// must takes note of an error that must not be.
func (n *node) must(err error) {
	if err != nil {
		n.c.fail(fmt.Errorf("vnet: node %d: %w", n.id, err))
	}
}

// compact drops entries that were applied long ago, many at a time: all up to
// where the state machine was at the compaction before.
func (n *node) compact() {
	if n.applied-n.mark < uint64(n.c.opts.Keep) && n.sinceMark < n.c.opts.KeepBytes {
		return
	}
	first, err := n.store.FirstIndex()
	n.must(err)
	if n.mark >= first {
		n.snapshot()
		n.must(n.store.Compact(n.mark))
	}
	n.mark, n.sinceMark = n.applied, 0
}

// snapshot makes a snapshot of the present state machine, if the disk has none.
func (n *node) snapshot() {
	_, err := n.store.CreateSnapshot(n.applied, nil, binary.LittleEndian.AppendUint32(nil, n.digest))
	if !errors.Is(err, raft.ErrSnapOutOfDate) {
		n.must(err)
	}
}

// storage is a core's view: its node's log, and a fresh snapshot.
type storage struct {
	*raft.MemoryStorage
	n *node
}

// Snapshot implements raft.Storage.
func (s storage) Snapshot() (*pb.Snapshot, error) {
	s.n.snapshot()
	return s.MemoryStorage.Snapshot()
}
