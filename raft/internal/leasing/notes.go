// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import (
	"sort"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft/internal/extend"
)

// sendNotes tells responders up to which index this node's log equals the leader's. A
// follower's note waits for durability like the acknowledgement beside it. A leader's, whose host
// may send while it writes (thesis 10.2.1), is about what is on its disk already, and carries its
// newest roster of now: a responder named later has a barrier at or above the note.
func (x *Leases) sendNotes() {
	note, to := x.node.OwnNote(leases.Index(x.matched))
	if len(to) == 0 || x.matched <= x.noted {
		return
	}
	x.noted = x.matched
	content := leases.AppendNote([]byte{forNote}, note)
	e := extend.Effect{Do: extend.Vouch, Holds: x.matched}
	if x.leads {
		e = extend.Effect{Do: extend.Send}
	}
	for _, id := range to {
		e.Msg = x.message(uint64(id), content)
		e.Msg.LogTerm, e.Msg.Index = new(x.term), new(x.matched)
		x.Ask(e)
	}
}

// Noted takes the same news from a message other than a note: a node durably holds the
// log of its leader's term up to an index.
func (x *Leases) Noted(from, term, index uint64) {
	if term == x.term && index > 0 {
		_ = x.node.StepNote(leases.NodeID(from), leases.Note{Term: leases.Term(term), Index: leases.Index(index)})
	}
}

// release moves the commit index of a responder, if notes allow it.
func (x *Leases) release() {
	if !x.cfg.Leases.Notes {
		return
	}
	committed := x.log.Committed()
	_, stored := x.log.Stored()
	durable := min(x.matched, stored)
	if durable <= committed {
		return
	}
	q := leases.Releasable{Durable: leases.Index(durable), Change: leases.Index(x.raft.Electorate().FirstPending())}
	// The first entry of the term behind the commit index: terms do not fall.
	first := committed + 1 + uint64(sort.Search(int(durable-committed), func(i int) bool {
		t, err := x.log.Term(committed + 1 + uint64(i))
		return err == nil && t >= x.term
	}))
	if first > durable {
		return
	}
	q.First = leases.Index(first)
	held := func(id uint64) uint64 {
		if id == x.id {
			return durable
		}
		return uint64(x.node.Noted(leases.NodeID(id)))
	}
	// A lower index may not be committable where units ride in the entries above, so
	// both rules are asked until their answers agree.
	k := durable
	for {
		q.UpTo = leases.Index(x.cfg.CommittableBy(k, held))
		to := uint64(x.node.Release(q))
		if to <= committed {
			return
		}
		if to == k {
			break
		}
		k = to
	}
	x.counts.NoteCommits++
	x.Ask(extend.Effect{Do: extend.Commit, ID: ecraft.ID{Term: x.term, Index: k}})
}
