// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"math"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/storage"
)

// writes is the replica's knowledge of its writes to the log.
//
// A commit index by itself is not written, because the index is a hint, which a restart
// raises to the applied index: the next write carries the commit index. Messages tied to
// the commit index by the core rest on the writes before, and leave when these writes are
// durable: at once, if no write is under way.
type writes struct {
	// term and vote are as of the last write; commit is the latest commit index, and late
	// tells that commit was not written.
	term, vote, commit uint64
	late               bool

	// A log takes so many entries, and bytes of them, in one write.
	maxEntries int
	maxBytes   uint64

	blank     bool   // the log had nothing at the start; constant
	handedOut uint64 // writes so far
	durable   uint64 // those that are done
	riders    []rider
	waiting   []waitingWrite // of entries or snapshots, in order
}

// waitingWrite is a write that is not known to be durable: of the entries from first on, or, if first
// is 0, of a snapshot, which begins the log anew.
type waitingWrite struct{ number, first uint64 }

// stored returns the highest index up to which the log is durable as it stands: no write waits that
// begins there or before. An index beyond the log counts as stored.
func (w *writes) stored() uint64 {
	to := uint64(math.MaxUint64)
	for _, q := range w.waiting {
		to = min(to, max(q.first, 1)-1)
	}
	return to
}

// nothing reports whether the log has nothing that is durable. A state beside such a log, after a crash, is that of a
// node whose log is lost, and which may have voted: the node would have to be replaced.
func (w *writes) nothing() bool { return w.blank && w.durable == 0 }

// await notes a write that waits.
func (w *writes) await(a *Append) {
	switch {
	case a.Write.Snapshot != nil:
		w.waiting = append(w.waiting, waitingWrite{number: a.number})
	case len(a.Write.Entries) > 0:
		w.waiting = append(w.waiting, waitingWrite{number: a.number, first: a.Write.Entries[0].GetIndex()})
	}
}

// done notes that the writes up to a number are durable.
func (w *writes) done(number uint64) {
	w.durable = max(w.durable, number)
	n := 0
	for n < len(w.waiting) && w.waiting[n].number <= w.durable {
		n++
	}
	w.waiting = slices.Delete(w.waiting, 0, n)
}

// rider holds the messages to deliver when a write is durable.
type rider struct {
	behind    uint64        // the number of the write
	own       []*pb.Message // for this node, one of a type
	responses []*pb.Message
}

// maxRiders bounds the responses to peers that wait for one write.
const maxRiders = 1024

// next takes as much from a write as a log takes at once, and reports whether
// anything is left. bytes is the size of all entries. Power may fail between two
// parts, so each has term and vote, and no commit index beyond its entries;
// responses wait for the last.
func (w *writes) next(whole *storage.Write, bytes uint64) (a Append, rest bool) {
	w.handedOut++
	a = Append{Write: *whole, bytes: int(bytes), number: w.handedOut}
	if len(whole.Entries) <= w.maxEntries && bytes <= w.maxBytes {
		return a, false
	}
	n, size := 0, uint64(0)
	for n < min(len(whole.Entries), w.maxEntries) {
		s := uint64(encoded.Size(whole.Entries[n]))
		if n > 0 && size+s > w.maxBytes {
			break
		}
		n, size = n+1, size+s
	}
	a.bytes = int(size)
	a.Write.Entries, whole.Entries, whole.Snapshot = whole.Entries[:n:n], whole.Entries[n:], nil
	if rest = len(whole.Entries) > 0; rest && whole.HardState != nil {
		end := a.Write.Entries[n-1].GetIndex()
		a.Write.HardState = &pb.HardState{Term: whole.HardState.Term, Vote: whole.HardState.Vote, Commit: new(min(whole.HardState.GetCommit(), end))}
	}
	return a, rest
}

// note takes the hard state of a write, if it has one, and reports whether term
// or vote are new, which must be durable.
func (w *writes) note(m *pb.Message) bool {
	if m.GetTerm() == 0 && m.GetVote() == 0 && m.GetCommit() == 0 {
		return false
	}
	changed := m.GetTerm() != w.term || m.GetVote() != w.vote
	w.late = w.late || m.GetCommit() != w.commit
	w.term, w.vote, w.commit = m.GetTerm(), m.GetVote(), m.GetCommit()
	return changed
}

// hardState returns what goes with a write, or nil if nothing is new.
func (w *writes) hardState(changed bool) *pb.HardState {
	if !changed && !w.late {
		return nil
	}
	w.late = false
	return &pb.HardState{Term: new(w.term), Vote: new(w.vote), Commit: new(w.commit)}
}

// tellSelf adds the core's word to itself on what is durable: between two writes it
// is the same each time, but its own vote before an election is another word than
// how far the log is.
func (d *rider) tellSelf(m *pb.Message) {
	i := slices.IndexFunc(d.own, func(said *pb.Message) bool { return said.GetType() == m.GetType() })
	if i < 0 {
		d.own = append(d.own, m)
	} else {
		d.own[i] = m
	}
}

// ride has responses wait until all writes so far are durable, and reports whether the responses wait: false
// if the writes are durable now, or there is no response.
func (w *writes) ride(self uint64, responses []*pb.Message) (waits bool) {
	if w.durable == w.handedOut || len(responses) == 0 {
		return false
	}
	if n := len(w.riders); n == 0 || w.riders[n-1].behind != w.handedOut {
		w.riders = append(w.riders, rider{behind: w.handedOut})
	}
	last := &w.riders[len(w.riders)-1]
	for _, m := range responses {
		if m.GetTo() == self {
			last.tellSelf(m)
		} else if len(last.responses) < maxRiders {
			last.responses = append(last.responses, m)
		} // else the disk is stuck while peers repeat themselves: the message is lost
	}
	return true
}
