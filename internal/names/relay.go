// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// Relay is the part of a member that passes data on. It keeps the entries that arrive, for a moment, and for longer
// while it is asked for any; and it answers each Want when the last of the entries wanted has arrived.
type Relay struct {
	// Patience is for how many ticks a Want waits.
	Patience uint64

	// Counts has what was done so far.
	Counts RelayCounts

	kept  []*pb.Entry // by index
	bytes int         // of kept. Invariant: at most 2*relayBytes, or one entry
	until uint64      // tick at which nothing is kept any more
	wants []want      // in the order of their arrival. Invariant: at most maxWants
	open  int         // entries of wants. Invariant: at most maxOpen
}

// RelayCounts count since the start of a Relay.
type RelayCounts struct {
	Passed, PassedBytes uint64 // Wants answered with the data, and its bytes
	NotHad              uint64 // without, as the data was not kept or did not come in time
}

// want is a Want that waits.
type want struct {
	from  uint64
	until uint64 // tick
	wire.Want
}

const (
	maxWants, maxOpen = 1024, 8 * wire.MaxEntries
	// fresh is for how many ticks entries are kept after an append, and wanted after a Want.
	fresh, wanted = 2, 100
)

// Saw keeps the entries of an append.
func (r *Relay) Saw(entries []*pb.Entry, tick uint64) {
	r.until = max(r.until, tick+fresh)
	for _, e := range entries {
		for n := len(r.kept); n > 0 && r.kept[n-1].GetIndex() >= e.GetIndex(); n = len(r.kept) {
			r.bytes -= weight(r.kept[n-1])
			r.kept = r.kept[:n-1]
		}
		r.kept = append(r.kept, e)
		r.bytes += weight(e)
	}
	for r.bytes > 2*relayBytes && len(r.kept) > 1 {
		r.bytes -= weight(r.kept[0])
		r.kept[0], r.kept = nil, r.kept[1:] // not moved: there may be thousands
	}
}

// Want takes a peer's Want. The caller asks Answers.
func (r *Relay) Want(from uint64, w wire.Want, tick uint64) {
	for len(r.wants) == maxWants || r.open+len(w.Entries) > maxOpen {
		r.open -= len(r.wants[0].Entries)
		r.wants = slices.Delete(r.wants, 0, 1) // its sender asks the leader
		r.Counts.NotHad++
	}
	r.open += len(w.Entries)
	r.until = tick + wanted
	r.wants = append(r.wants, want{from: from, until: tick + r.Patience, Want: w})
}

// Answers returns the answers that are due.
func (r *Relay) Answers(tick uint64) (out []Ask) {
	if tick >= r.until {
		r.kept, r.bytes = nil, 0
	}
	r.wants = slices.DeleteFunc(r.wants, func(w want) bool {
		data, waits := r.find(w.Entries)
		if waits && tick < w.until {
			return false
		}
		r.open -= len(w.Entries)
		if data == nil {
			r.Counts.NotHad++
		} else {
			r.Counts.Passed++
		}
		for _, d := range data {
			r.Counts.PassedBytes += uint64(len(d))
		}
		out = append(out, Ask{To: w.from, Body: wire.Fill{Term: w.Term, Number: w.Number, Data: data}})
		return true
	})
	return out
}

// find returns the data of entries, or whether it may still arrive.
func (r *Relay) find(entries []wire.EntryAt) (data [][]byte, waits bool) {
	for _, at := range entries {
		i, ok := slices.BinarySearchFunc(r.kept, at.Index, func(e *pb.Entry, index uint64) int {
			return cmp.Compare(e.GetIndex(), index)
		})
		if !ok {
			return nil, i == len(r.kept)
		}
		if r.kept[i].GetTerm() != at.Term {
			return nil, r.kept[i].GetTerm() < at.Term
		}
		data = append(data, r.kept[i].Data)
	}
	return data, false
}
