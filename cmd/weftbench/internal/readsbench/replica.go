// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"encoding/binary"

	pb "go.etcd.io/raft/v3/raftpb"
)

// replica is the host of a node.
type replica struct {
	g  *group
	id uint64
	// latest has the index of the last write of each key in the state machine, which has applied
	// the log up to applied. commit is the commit index of the core.
	latest          []uint64
	applied, commit uint64
	// log is the node's log, disk the durable part of the log.
	log, disk keyLog
	waiting   []waiting
	// State of the drivers.
	grants map[grant]uint64
	notes  map[uint64]note
	held   []waiting
}

// waiting is a read that waits for an index.
type waiting struct {
	index uint64
	run   func()
	op    *op
}

func newReplica(g *group, id uint64) *replica {
	return &replica{g: g, id: id, latest: make([]uint64, g.keys), log: newKeyLog(g.keys), disk: newKeyLog(g.keys), grants: map[grant]uint64{}, notes: map[uint64]note{}}
}

// apply takes an entry into the state machine.
func (r *replica) apply(e *pb.Entry) {
	r.applied = e.GetIndex()
	if key, ok := keyOf(e.GetData()); ok {
		r.latest[key] = r.applied
		r.g.check.committed(r.applied, key)
		if o := r.g.open[binary.LittleEndian.Uint64(e.GetData())]; o != nil && o.node == r.id {
			r.answer(o, r.applied)
		}
	}
	if len(r.waiting) == 0 {
		return
	}
	list := r.waiting
	r.waiting = nil
	for _, w := range list {
		r.when(w.index, w.run)
	}
}

// when calls run after the state machine has applied an index.
func (r *replica) when(index uint64, run func()) {
	if r.applied >= index {
		run()
		return
	}
	r.waiting = append(r.waiting, waiting{index: index, run: run})
}

// answerAt answers a read from the state, after the state machine has applied an index.
func (r *replica) answerAt(index uint64, o *op) {
	r.when(index, func() { r.answer(o, r.latest[o.key]) })
}

// committed is called with the new commit index.
func (r *replica) committed(index uint64) {
	from := r.commit
	r.commit = index
	if f := r.g.policy.onCommit; f != nil {
		f(r, from, index)
	}
}

func (r *replica) stored(ents []*pb.Entry) {
	r.disk.add(ents)
	r.release()
}

// keyLog holds the keys of a log's entries, and the last entry of each key.
type keyLog struct {
	first uint64  // the index of keys[0]; 0: nothing is there
	keys  []int32 // of entries, -1: none
	last  []uint64
}

func newKeyLog(keys int) keyLog { return keyLog{last: make([]uint64, keys)} }

// add appends entries, and drops older entries from the first index on.
func (l *keyLog) add(ents []*pb.Entry) {
	first := ents[0].GetIndex()
	if l.first == 0 {
		l.first = first
	}
	if at := int(first - l.first); at < len(l.keys) {
		l.keys = l.keys[:at]
		clear(l.last)
		for i, k := range l.keys {
			if k >= 0 {
				l.last[k] = l.first + uint64(i)
			}
		}
	}
	for _, e := range ents {
		key, ok := keyOf(e.GetData())
		if !ok {
			l.keys = append(l.keys, -1)
			continue
		}
		l.keys = append(l.keys, int32(key))
		l.last[key] = e.GetIndex()
	}
}

// key returns the key that an entry writes; false for an entry without a key.
func (l *keyLog) key(index uint64) (int, bool) {
	if index < l.first || index-l.first >= uint64(len(l.keys)) || l.keys[index-l.first] < 0 {
		return 0, false
	}
	return int(l.keys[index-l.first]), true
}
