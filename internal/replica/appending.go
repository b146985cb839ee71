// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// appendEntries hands a write to the append stage, with held messages to send
// when it is durable. Those are a candidate's requests for votes: its new term
// and vote are in the write. A core that asked before, as upstream's does, could
// lead a term, lose power, and lead it again with another log.
func (r *Replica) appendEntries(m *pb.Message, held []*pb.Message) {
	responses := m.Responses
	if len(held) > 0 {
		responses = slices.Concat(responses, held)
	}
	state := r.writes.note(m)
	snapshot := !raft.IsEmptySnap(m.Snapshot)
	if len(m.Entries) == 0 && !snapshot && !state {
		if !r.writes.ride(r.cfg.ID, responses) {
			r.deliver(responses)
		}
		return
	}
	w := storage.Write{Entries: m.Entries, HardState: r.writes.hardState(state)}
	if snapshot {
		w.Snapshot = m.Snapshot
		r.last = m.Snapshot.GetMetadata().GetIndex()
		r.keep.reset(r.last)
		r.coreJumped(m.Snapshot)
	}
	bytes := uint64(0)
	if n := len(m.Entries); n > 0 {
		end := m.Entries[n-1]
		r.last, r.lastHasData = end.GetIndex(), end.GetType() == pb.EntryNormal && len(end.GetData()) > 0
		r.count.AppendedEntries += uint64(n)
		bytes = r.keep.appended(m.Entries)
		r.count.AppendedBytes += bytes
	}
	for rest := true; rest; {
		var a Append
		a, rest = r.writes.next(&w, bytes)
		if !rest {
			a.responses = responses
		}
		r.count.Appends++
		r.writes.await(&a)
		r.out.Appends = append(r.out.Appends, a)
	}
	r.placing.timeWrite(r.writes.handedOut)
}

// AppendDone says that a write, and all before it, is durable.
func (r *Replica) AppendDone(a Append) {
	w := &r.writes
	w.done(a.number)
	r.placing.timedWrite(w.durable)
	if r.stall.late() {
		r.stall.look(w) // not late any more
	}
	r.intake.wrote(a.bytes, w.durable == w.handedOut)
	r.countDurable()
	r.deliver(a.responses)
	n := 0
	for n < len(w.riders) && w.riders[n].behind <= w.durable {
		r.deliver(w.riders[n].own)
		r.deliver(w.riders[n].responses)
		n++
	}
	w.riders = slices.Delete(w.riders, 0, n)
}

// Durable says up to which index the state machine's state is durable. The
// replica answers with a Compact when enough of the log can go.
func (r *Replica) Durable(index uint64) {
	r.keep.reported = max(r.keep.reported, index)
	r.countDurable()
}

func (r *Replica) countDurable() {
	if r.keep.count(r.writes.stored()) {
		r.compact()
	}
}

// compact asks for a Compact if enough of the log can go.
func (r *Replica) compact() {
	if c := r.keep.compact(); c != nil {
		r.out.Compact = c
	}
}
