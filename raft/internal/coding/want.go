// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
)

// Payloads that a node lacks and asks others for: those of committed entries, which the
// node is to apply, in order; and at a leader those of entries that the leader is to
// send on.
//
// A leader wants an entry for as long as the leader has a use for it: each failed try
// to send the entry to a member, or to raise the entry, renews the want. An entry whose
// want was not renewed for an election timeout is asked for no more, because the member
// has got a snapshot instead, or is gone, or the members have changed by another way.

// wants is the payloads that this node lacks, and the questions for them.
type wants struct {
	*payloads
	puller *gossip.Puller
	// leader is this node as a leader.
	//
	// Invariant: nil if and only if this node does not lead.
	leader purpose
}

// purpose is the use that a leader has for payloads of applied entries.
type purpose interface {
	// waits reports whether a member or a change of the members waits for payloads.
	waits() bool
	// checks reports whether a check of the members concerns a compacted entry.
	checks(index uint64) bool
}

// want has the payload of an entry completed although this node need not apply the
// entry, or not yet.
func (w *wants) want(rec *record) {
	if !w.renewWanted(rec.id.Index) && !rec.complete && w.expectPinned(rec) {
		w.addWanted(rec)
	}
}

// renewWanted renews the want of an entry, and reports whether the entry is wanted.
func (w *wants) renewWanted(index uint64) bool {
	rec := w.wanted[index]
	if rec != nil {
		rec.neededAt = w.ticks
	}
	return rec != nil
}

func (w *wants) addWanted(rec *record) {
	rec.wantedAt, rec.neededAt = w.ticks, w.ticks
	w.wanted[rec.id.Index] = rec
}

// wantAhead has entries of the log completed: the next entries for a member, and some
// more, so that the member need not wait for each.
func (w *wants) wantAhead(ents []*pb.Entry) {
	n := len(w.wanted)
	defer func() {
		if len(w.wanted) > n {
			w.pull()
		}
	}()
	more := ecraft.MaxRiders + 1 // the next entry and its riders; those behind wait for room
	for i, e := range ents {
		env, err := w.open(e)
		if err != nil || i >= maxWanted {
			return
		}
		if env == nil || w.renewWanted(e.GetIndex()) {
			continue
		}
		if env.Kind == ecraft.Coded {
			w.wantEntry(idOf(e), env, more)
		}
		for _, r := range env.Riders {
			id := ecraft.ID{Term: r.Term, Index: r.Index}
			if id.Index <= w.released() || w.renewWanted(id.Index) {
				continue
			}
			if under, err := w.envelopeOf(id); err == nil && under.Kind == ecraft.Coded {
				w.wantEntry(id, under, more)
			}
		}
		more = 0
	}
}

// maxWanted bounds how many entries a leader completes ahead for a member.
const maxWanted = 32

// wantEntry has one entry of the log completed, unless too many are wanted, by so many more than
// usual.
func (w *wants) wantEntry(id ecraft.ID, env *ecraft.Envelope, more int) {
	if len(w.wanted) >= 2*maxWanted+more {
		return
	}
	if rec := w.ledger.find(id.Index); rec != nil {
		w.want(rec)
		return
	}
	if env.Payload != nil || w.store.Payload(id) != nil {
		return
	}
	hdr := env.Header
	rec := &record{id: id, hdr: &hdr}
	if w.expectPinned(rec); rec.pinned { // also if this node's own units complete the entry
		w.addWanted(rec)
	}
}

// wantLost starts to complete an entry compacted by this node, whose header came from
// another member.
func (w *wants) wantLost(rec *record) {
	if w.renewWanted(rec.id.Index) || len(w.wanted) >= 2*maxWanted {
		return
	}
	rec.pinned = true
	rec.complete = w.store.ExpectPinned(rec.id, rec.hdr)
	w.forgetting()
	w.addWanted(rec)
	w.pull()
}

// pull asks for units that are lacking: of committed entries, in order, and of entries
// that a leader needs to send on.
func (w *wants) pull() {
	w.forgetWanted()
	for _, ask := range w.puller.Plan(w.ticks, w.lacking(), w.raft.Lead(), nil) {
		if ask.To == w.id {
			continue
		}
		e := w.unitsMessage(MsgUnitsAsk, ask.To, forAsk)
		for _, want := range ask.Wants {
			e.Entries = append(e.Entries, named(want.ID, gossip.AppendAsk(nil, want)))
		}
		w.send(e)
		w.emit(Event{Kind: Asked, Peer: ask.To, Count: len(ask.Wants)})
	}
}

// maxLacking bounds the entries that are asked for at a time.
const maxLacking = 512

// lacking lists the entries that this node must have and lacks, the oldest first.
func (w *wants) lacking() []gossip.Lacking {
	g := w.ledger
	upTo := w.log.Committed()
	next := g.incomplete()
	if next != nil {
		n := 0
		for _, rec := range g.recs[g.ready:] {
			if rec.id.Index > upTo || n == maxLacking || !w.mayExpect(rec.id.Index) {
				break
			}
			if !rec.complete && w.expect(rec) {
				n++
			}
		}
	}
	for index := range w.wanted {
		upTo = max(upTo, index)
	}
	list := w.store.Lacking(upTo, maxLacking, nil)
	for i := range list {
		if rec := g.find(list[i].Index); rec != nil {
			list[i].Next, list[i].Overdue = rec == next, rec.unpushed
		}
	}
	return list
}

// stuckAt returns the first committed entry lacking here that no peer can complete.
func (w *wants) stuckAt() (uint64, bool) {
	rec := w.ledger.incomplete()
	if rec == nil || rec.id.Index > w.log.Committed() || !w.puller.IsStuck(rec.id) {
		return 0, false
	}
	return rec.id.Index, true
}

// forgetWanted forgets the entries that are wanted no more.
func (w *wants) forgetWanted() {
	if len(w.wanted) == 0 { // sorting nothing allocates
		return
	}
	for _, index := range slices.Sorted(maps.Keys(w.wanted)) {
		if rec := w.wanted[index]; rec.complete && !w.keeps(rec) || w.unneeded(rec) {
			w.unpin(rec)
			delete(w.wanted, index)
		}
	}
	w.forgetting()
}

// keeps reports whether a payload that was completed to be sent on is kept for a while:
// a carrier can be sent only when the payloads of all its riders are there, and a
// change of the members waits for many.
func (w *wants) keeps(rec *record) bool {
	return w.leader != nil && w.leader.waits() && w.ticks-rec.wantedAt < w.cfg.ElectionTick
}

// unneeded reports whether the want of an entry has ended: this node does not lead any
// more, or has had no use for the entry for a while, or has compacted the entry and no
// check of members needs it.
func (w *wants) unneeded(rec *record) bool {
	index := rec.id.Index
	return w.leader == nil || w.ticks-rec.neededAt > w.cfg.ElectionTick ||
		index < w.log.First() && !w.leader.checks(index)
}
