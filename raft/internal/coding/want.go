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

// What a node lacks and asks others for: payloads of committed entries, which it
// is to apply, in order; and at a leader those of entries that it is to send on.

// want has the payload of an entry completed although this node need not apply
// it, or not yet.
func (c *Coder) want(rec *record) {
	if !rec.complete && c.wanted[rec.id.Index] == nil && c.expectPinned(rec) {
		rec.wantedAt = c.ticks
		c.wanted[rec.id.Index] = rec
	}
}

// wantAhead has entries of the log completed: those that a member is to be sent
// next, and some more, so that it need not wait for each.
func (c *Coder) wantAhead(ents []*pb.Entry) {
	n := len(c.wanted)
	defer func() {
		if len(c.wanted) > n {
			c.pull()
		}
	}()
	for i, e := range ents {
		env, err := c.open(e)
		if err != nil || i >= maxWanted || len(c.wanted) >= 2*maxWanted {
			return
		}
		if env == nil || c.wanted[e.GetIndex()] != nil {
			continue
		}
		if env.Kind == ecraft.Coded {
			c.wantEntry(idOf(e), env)
		}
		for _, r := range env.Riders {
			id := ecraft.ID{Term: r.Term, Index: r.Index}
			if id.Index <= c.released() {
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

// wantEntry has one entry of the log completed.
func (c *Coder) wantEntry(id ecraft.ID, env *ecraft.Envelope) {
	if rec := c.ledger.find(id.Index); rec != nil {
		c.want(rec)
		return
	}
	if env.Payload != nil || c.wanted[id.Index] != nil || c.store.Payload(id) != nil {
		return
	}
	hdr := env.Header
	rec := &record{id: id, hdr: &hdr, wantedAt: c.ticks}
	if c.expectPinned(rec); rec.pinned { // also if this node's own units make it complete
		c.wanted[id.Index] = rec
	}
}

// wantLost has an entry completed that this node has compacted, of which it knows
// the header.
func (c *Coder) wantLost(rec *record) {
	if c.wanted[rec.id.Index] != nil || len(c.wanted) >= 2*maxWanted {
		return
	}
	rec.wantedAt, rec.pinned = c.ticks, true
	rec.complete = c.store.ExpectPinned(rec.id, rec.hdr)
	c.forgetting()
	c.wanted[rec.id.Index] = rec
	c.pull()
}

// pull asks for what is lacking: of committed entries, in order, and of those
// that a leader needs to send on.
func (c *Coder) pull() {
	lacking := c.lacking()
	if len(lacking) == 0 {
		return
	}
	for _, ask := range c.puller.Plan(c.ticks, lacking, c.raft.Lead(), nil) {
		if ask.To == c.id {
			continue
		}
		e := c.unitsMessage(MsgUnitsAsk, ask.To, forAsk)
		for _, w := range ask.Wants {
			e.Entries = append(e.Entries, named(ecraft.ID{Term: w.Term, Index: w.Index}, gossip.AppendAsk(nil, w)))
		}
		c.send(e)
		c.record(Event{Kind: Asked, Peer: ask.To, Count: len(ask.Wants)})
	}
}

// maxLacking bounds the entries that are asked for at a time.
const maxLacking = 512

// lacking lists what this node must have and has not, the oldest first.
func (c *Coder) lacking() []gossip.Lacking {
	g := &c.ledger
	upTo := c.log.Committed()
	if c.incomplete() != nil {
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
	if len(c.wanted) > 0 { // sorting nothing allocates
		upTo = max(upTo, c.tidyWanted())
	}
	list := c.store.Lacking(upTo, maxLacking, nil)
	for i := range list {
		rec := g.find(list[i].Index)
		list[i].Overdue = rec != nil && rec.unpushed
	}
	return list
}

// mayExpect reports whether there may be room for an entry. There is none for what
// was forgotten, until something is applied or the next tick: it would drive others
// out, and be driven out, as often as answers come, and each time all are asked for
// anew.
func (c *Coder) mayExpect(index uint64) bool {
	return c.noRoomFrom == 0 || index < c.noRoomFrom || c.ticks != c.noRoomTick
}

// tidyWanted forgets the entries that are wanted no more, and returns the last
// that is.
func (c *Coder) tidyWanted() (last uint64) {
	for _, index := range slices.Sorted(maps.Keys(c.wanted)) {
		rec := c.wanted[index]
		if rec.complete && !c.keeps(rec) || c.unneeded(index) {
			c.unpin(rec)
			delete(c.wanted, index)
			continue
		}
		last = index
	}
	return last
}

// keeps reports whether a payload that was completed to be sent on is kept for a
// while: a carrier can be sent only when all that rides in it is there, and a
// change of the members waits for many.
func (c *Coder) keeps(rec *record) bool {
	l := c.leads
	return l != nil && (len(l.blocked) > 0 || c.ticks-l.check.failedAt < 2) && c.ticks-rec.wantedAt < c.cfg.ElectionTick
}

// unneeded reports whether an entry that was wanted no longer is: this node
// does not lead any more, or has compacted it and no check of members needs it.
func (c *Coder) unneeded(index uint64) bool {
	l := c.leads
	return l == nil || index < c.log.First() && l.check.headers[index] == nil
}

// expect sees to it that the store knows an entry that is not complete. If it
// had given up its units for lack of room, it gets those of the log again. It
// reports whether units are lacking.
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
	rec.damaged = !sound
	c.ledger.complete(rec, c.store.ExpectPinned(rec.id, rec.hdr, own...))
	c.forgetting()
	return !rec.complete
}

// ownUnits returns the units of an entry that this node's log has: those
// assigned to it, which stand in its envelope, and riders. They are sound if
// none is lacking because the log is damaged: others have what is, but must not
// be told that this is all there is.
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
