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

// want has the payload of an entry completed although this node need not apply the
// entry, or not yet.
func (c *Coder) want(rec *record) {
	if !c.renewWanted(rec.id.Index) && !rec.complete && c.expectPinned(rec) {
		c.addWanted(rec)
	}
}

// renewWanted renews the want of an entry, and reports whether the entry is wanted.
func (c *Coder) renewWanted(index uint64) bool {
	rec := c.wanted[index]
	if rec != nil {
		rec.neededAt = c.ticks
	}
	return rec != nil
}

func (c *Coder) addWanted(rec *record) {
	rec.wantedAt, rec.neededAt = c.ticks, c.ticks
	c.wanted[rec.id.Index] = rec
}

// wantAhead has entries of the log completed: the next entries for a member, and some
// more, so that the member need not wait for each.
func (c *Coder) wantAhead(ents []*pb.Entry) {
	n := len(c.wanted)
	defer func() {
		if len(c.wanted) > n {
			c.pull()
		}
	}()
	for i, e := range ents {
		env, err := c.open(e)
		if err != nil || i >= maxWanted {
			return
		}
		if env == nil || c.renewWanted(e.GetIndex()) {
			continue
		}
		if env.Kind == ecraft.Coded {
			c.wantEntry(idOf(e), env)
		}
		for _, r := range env.Riders {
			id := ecraft.ID{Term: r.Term, Index: r.Index}
			if id.Index <= c.released() || c.renewWanted(id.Index) {
				continue
			}
			if under, err := c.envelopeOf(id); err == nil && under.Kind == ecraft.Coded {
				c.wantEntry(id, under)
			}
		}
	}
}

// maxWanted bounds how many entries a leader completes ahead for a member.
const maxWanted = 32

// wantEntry has one entry of the log completed, if not too many are wanted.
func (c *Coder) wantEntry(id ecraft.ID, env *ecraft.Envelope) {
	if len(c.wanted) >= 2*maxWanted {
		return
	}
	if rec := c.ledger.find(id.Index); rec != nil {
		c.want(rec)
		return
	}
	if env.Payload != nil || c.store.Payload(id) != nil {
		return
	}
	hdr := env.Header
	rec := &record{id: id, hdr: &hdr}
	if c.expectPinned(rec); rec.pinned { // also if this node's own units complete the entry
		c.addWanted(rec)
	}
}

// wantLost starts to complete an entry compacted by this node, whose header came from
// another member.
func (c *Coder) wantLost(rec *record) {
	if c.renewWanted(rec.id.Index) || len(c.wanted) >= 2*maxWanted {
		return
	}
	rec.pinned = true
	rec.complete = c.store.ExpectPinned(rec.id, rec.hdr)
	c.forgetting()
	c.addWanted(rec)
	c.pull()
}

// pull asks for units that are lacking: of committed entries, in order, and of entries
// that a leader needs to send on.
func (c *Coder) pull() {
	c.forgetWanted()
	for _, ask := range c.puller.Plan(c.ticks, c.lacking(), c.raft.Lead(), nil) {
		if ask.To == c.id {
			continue
		}
		e := c.unitsMessage(MsgUnitsAsk, ask.To, forAsk)
		for _, w := range ask.Wants {
			e.Entries = append(e.Entries, named(ecraft.ID{Term: w.Term, Index: w.Index}, gossip.AppendAsk(nil, w)))
		}
		c.send(e)
		c.emit(Event{Kind: Asked, Peer: ask.To, Count: len(ask.Wants)})
	}
}

// maxLacking bounds the entries that are asked for at a time.
const maxLacking = 512

// lacking lists the entries that this node must have and lacks, the oldest first.
func (c *Coder) lacking() []gossip.Lacking {
	g := &c.ledger
	upTo := c.log.Committed()
	next := c.incomplete()
	if next != nil {
		n := 0
		for _, rec := range g.recs[g.ready:] {
			if rec.id.Index > upTo || n == maxLacking || !c.mayExpect(rec.id.Index) {
				break
			}
			if !rec.complete && c.expect(rec) {
				n++
			}
		}
	}
	for index := range c.wanted {
		upTo = max(upTo, index)
	}
	list := c.store.Lacking(upTo, maxLacking, nil)
	for i := range list {
		if rec := g.find(list[i].Index); rec != nil {
			list[i].Next, list[i].Overdue = rec == next, rec.unpushed
		}
	}
	return list
}

// mayExpect reports whether there may be room for an entry. For a forgotten entry there
// is none until another entry is applied or the next tick comes: otherwise entries
// would drive each other out as often as answers come, and each time all units would be
// asked for anew.
func (c *Coder) mayExpect(index uint64) bool {
	return c.noRoomFrom == 0 || index < c.noRoomFrom || c.ticks != c.noRoomTick
}

// forgetWanted forgets the entries that are wanted no more.
func (c *Coder) forgetWanted() {
	if len(c.wanted) == 0 { // sorting nothing allocates
		return
	}
	for _, index := range slices.Sorted(maps.Keys(c.wanted)) {
		if rec := c.wanted[index]; rec.complete && !c.keeps(rec) || c.unneeded(rec) {
			c.unpin(rec)
			delete(c.wanted, index)
		}
	}
}

// keeps reports whether a payload that was completed to be sent on is kept for a while:
// a carrier can be sent only when the payloads of all its riders are there, and a
// change of the members waits for many.
func (c *Coder) keeps(rec *record) bool {
	l := c.leads
	return l != nil && (len(l.blocked) > 0 || c.ticks-l.check.failedAt < 2) && c.ticks-rec.wantedAt < c.cfg.ElectionTick
}

// unneeded reports whether the want of an entry has ended: this node does not lead any
// more, or has had no use for the entry for a while, or has compacted the entry and no
// check of members needs it.
func (c *Coder) unneeded(rec *record) bool {
	l, index := c.leads, rec.id.Index
	return l == nil || c.ticks-rec.neededAt > c.cfg.ElectionTick ||
		index < c.log.First() && l.check.headers[index] == nil
}

// expect sees to it that the store knows an entry that is not complete. If the store
// had given the entry up for lack of room, it gets the units of the log again. The
// result says whether units are lacking.
func (c *Coder) expect(rec *record) bool {
	id := rec.id
	if c.store.Known(id) {
		return true
	}
	env, err := c.envelopeOf(rec.id)
	if err != nil {
		return false
	}
	own, _ := c.ownUnits(rec.id, env)
	c.ledger.complete(rec, c.store.Expect(id, rec.hdr, own...))
	c.forgetting()
	return !rec.complete
}

// expectPinned is expect for an entry that there must be room for.
func (c *Coder) expectPinned(rec *record) bool {
	if rec.pinned {
		return !rec.complete
	}
	env, err := c.envelopeOf(rec.id)
	if err != nil {
		return false
	}
	rec.pinned = true
	own, sound := c.ownUnits(rec.id, env)
	c.ledger.complete(rec, c.store.ExpectPinned(rec.id, rec.hdr, own...))
	missing, _ := c.store.Missing(rec.id)
	rec.damaged = !sound || len(own) > 0 && missing == rec.hdr.D // the log's make a wrong payload
	c.forgetting()
	return !rec.complete
}

// ownUnits returns the units of an entry that this node's log has: the units of the
// envelope, and of riders. They are sound if none is lacking because the log is
// damaged. Units of a damaged log may be given to others, but not as an answer that
// claims to be all.
func (c *Coder) ownUnits(id ecraft.ID, env *ecraft.Envelope) (units []ecraft.Strip, sound bool) {
	sound = true
	add := func(s ecraft.Strip) {
		if s.Verify() != nil {
			sound = false
		} else if s.Count > 0 {
			units = append(units, s)
		}
	}
	add(env.Own)
	riding, read := c.riderUnits(id)
	for _, s := range riding {
		add(s)
	}
	return units, sound && read
}
