// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Bodega as published (Figure 17): a responder answers with the last write of the key in its log
// when a majority is known to have accepted the write in this term (line 39), and the leader
// answers with the last write that the leader has committed (line 36). Both rules are wrong:
// another responder may lack the write, and the leader may not have committed the write, and each
// of the two then answers with the older value.

// note is the index up to which a node holds the log of a term.
type note struct{ term, index uint64 }

// readAsPublished handles a read by the published rules. Leases, notes and commits are the core's,
// and the core releases a read by its own rule if its release comes first.
func readAsPublished(r *replica, rn *raft.RawNode, o *op) {
	lead := r.g.lead(rn)
	switch {
	case lead == r:
		readAtPublishedLeader(r, rn, o.key, func(version uint64) { r.answer(o, version) })
	case r.g.responds(r.id):
		if last := r.log.last[o.key]; last > r.commit && rn.LeaseStatus().Stable {
			r.held = append(r.held, waiting{index: last, op: o})
			r.release()
		}
		readByCore(r, rn, o)
	case lead == nil:
		readByCore(r, rn, o)
	default:
		r.redirect(lead, o, func(rn *raft.RawNode, answer func(uint64)) { readAtPublishedLeader(lead, rn, o.key, answer) })
	}
}

func readAtPublishedLeader(r *replica, rn *raft.RawNode, key int, answer func(version uint64)) {
	if rn.LeaseStatus().Stable {
		answer(r.latest[key])
		return
	}
	r.ask(rn, key, func(index uint64) { r.when(index, func() { answer(r.latest[key]) }) })
}

// Notes are messages of leases, by their number on the wire and the first byte of the context.
const (
	msgLeases = pb.MessageType(66)
	forNote   = 'n'
)

// arrives handles notes.
func (r *replica) arrives(m *pb.Message) {
	if m.GetType() != msgLeases || len(m.GetContext()) == 0 || m.GetContext()[0] != forNote {
		return
	}
	if x := (note{m.GetLogTerm(), m.GetIndex()}); x.term > r.notes[m.GetFrom()].term || x.index > r.notes[m.GetFrom()].index {
		r.notes[m.GetFrom()] = x
	}
	r.release()
}

// release answers the reads that a majority of notes releases.
func (r *replica) release() {
	if len(r.held) == 0 {
		return
	}
	term := r.g.c.Core(r.id).BasicStatus().GetTerm()
	list := r.held
	r.held = nil
	for _, h := range list {
		count := 0
		if r.disk.last[h.op.key] >= h.index {
			count++
		}
		for _, x := range r.notes {
			if x.term == term && x.index >= h.index {
				count++
			}
		}
		switch {
		case count >= r.g.majority():
			r.answer(h.op, h.index)
		case r.commit < h.index:
			r.held = append(r.held, h)
		}
	}
}
