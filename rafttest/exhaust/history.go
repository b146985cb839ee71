// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/raft"
)

// history is the past of a world, as far as invariants need the past.
type history struct {
	key uint64
	// committed[i] is what is known of entry i+1; leaders has the leader of each term.
	committed []fact
	leaders   []reign
	// acked is the last index of a payload that was handed to a host: its client may
	// have been told.
	acked uint64
	// asked is, for each read, the last index that its answer must not miss.
	asked []answer
}

// fact is a committed entry: its term, the least term of a node that knew the entry to
// be committed, and the print of what hosts were handed; 0: not known.
type fact struct{ term, by, what uint64 }

type reign struct {
	term  uint64
	node  int
	boots int
}

// learn returns the history after an edge of a node, which is in its new state.
func (a *automata) learn(w *world, i int, e *edge) *history {
	h, st := w.hist, w.nodes[i]
	known, changed := len(h.committed), false
	change := func() {
		if !changed {
			own := *h
			own.committed = slices.Clone(h.committed)
			h, changed = &own, true
		}
	}
	wrong := func(format string, args ...any) {
		if w.broken == "" {
			w.broken = fmt.Sprintf(format, args...)
		}
	}
	for at := uint64(1); at <= st.commit; at++ {
		term := st.log.termAt(at)
		switch {
		case at > uint64(known):
			change()
			h.committed = append(h.committed, fact{term: term, by: max(st.term, st.disk.term)})
		case term != 0 && h.committed[at-1].term != 0 && term != h.committed[at-1].term:
			wrong("state machine safety: node %d has entry %d of term %d committed; another had it of term %d", i+1, at, term, h.committed[at-1].term)
		}
	}
	for _, x := range e.handed {
		if x.index > uint64(len(h.committed)) {
			wrong("node %d is handed entry %d, which is not committed", i+1, x.index)
			break
		}
		switch f := &h.committed[x.index-1]; {
		case f.what == 0:
			change()
			h.committed[x.index-1].what = x.what
		case f.what != x.what:
			wrong("state machine safety: node %d is handed another entry %d than a node before", i+1, x.index)
		}
		if x.payload && x.index > h.acked {
			change()
			h.acked = x.index
		}
	}
	for _, r := range e.reads {
		for _, q := range h.asked {
			if q.read == r.read && r.index < q.index {
				wrong("stale read: read %d is answered with index %d at node %d; entry %d was committed and acknowledged before it was asked", r.read, r.index, i+1, q.index)
			}
		}
	}
	if st.up && st.role == raft.StateLeader {
		now := reign{st.term, i, st.boots}
		at := slices.IndexFunc(h.leaders, func(r reign) bool { return r.term == st.term })
		switch {
		case at < 0:
			change()
			h.leaders = append(slices.Clip(h.leaders), now)
			slices.SortFunc(h.leaders, func(a, b reign) int { return int(a.term) - int(b.term) })
		case h.leaders[at] != now:
			wrong("election safety: node %d (start %d) leads term %d, which node %d (start %d) led", i+1, st.boots, st.term, h.leaders[at].node+1, h.leaders[at].boots)
		}
		a.complete(h, st, wrong)
	}
	if changed {
		h.key = h.print()
	}
	return h
}

// complete checks that a leader has every entry that was committed before its term.
func (a *automata) complete(h *history, st *state, wrong func(string, ...any)) {
	for i, f := range h.committed {
		at := uint64(i + 1)
		if f.by < st.term && at > st.log.base && f.term != 0 && st.log.termAt(at) != f.term {
			wrong("leader completeness: node %d leads term %d without entry %d of term %d, which was committed in term %d", st.node+1, st.term, at, f.term, f.by)
			return
		}
	}
}

// reads returns the history after a read was asked.
func (h *history) reads(read int) *history {
	after := *h
	after.asked = append(slices.Clip(h.asked), answer{read, h.acked})
	after.key = after.print()
	return &after
}

func (h *history) print() uint64 {
	k := mix(0, h.acked)
	for _, f := range h.committed {
		k = mix(mix(mix(k, f.term), f.by), f.what)
	}
	for _, q := range h.asked {
		k = mix(mix(k, uint64(q.read)), q.index)
	}
	for _, r := range h.leaders {
		k = mix(mix(mix(k, r.term), uint64(r.node)), uint64(r.boots))
	}
	return k
}
