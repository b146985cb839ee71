// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Notes of entries that come into the log, are replaced, and are applied; and the
// checks before.

// accepted are entries and their envelopes: nil for a plain entry, and no envelopes at
// all if every entry is plain.
type accepted struct {
	ents []*pb.Entry
	envs []*ecraft.Envelope
}

// Accept checks entries from a leader before the log takes the entries, and refuses
// entries without use to this node, now or later.
func (c *Coder) Accept(ents []*pb.Entry) error {
	envs, err := c.openAll(ents)
	for i := 0; i < len(envs) && err == nil; i++ {
		if envs[i] != nil {
			err = c.plausible(idOf(ents[i]), envs[i], ents[:i], envs[:i])
		}
	}
	if err != nil {
		c.emit(Event{Kind: Rejected, Peer: c.raft.Lead()})
		return err
	}
	c.fresh = accepted{ents: ents, envs: envs}
	return nil
}

// plausible checks an envelope from the network against the log: the units must be
// intact, and the riders must be for coded entries before the envelope.
func (c *Coder) plausible(id ecraft.ID, env *ecraft.Envelope, before []*pb.Entry, envs []*ecraft.Envelope) error {
	if err := env.Own.Verify(); err != nil {
		return fault(id, err)
	}
	for i, rider := range env.Riders {
		if err := env.RiderUnits[i].Verify(); err != nil {
			return fault(id, fmt.Errorf("rider for %d/%d: %w", rider.Term, rider.Index, err))
		}
		if rider.Index >= id.Index || rider.Term > id.Term {
			return fault(id, fmt.Errorf("rider for %d/%d, which does not stand before it", rider.Term, rider.Index))
		}
		slots, known := c.slotsOf(ecraft.ID{Term: rider.Term, Index: rider.Index}, before, envs)
		if known && len(rider.Totals) != slots {
			return fault(id, fmt.Errorf("rider for %d/%d has %d totals, the entry has %d slots", rider.Term, rider.Index, len(rider.Totals), slots))
		}
	}
	return nil
}

// slotsOf returns the number of slots of an entry that is not applied, in the log or
// before the present one in the same message; 0 if the entry is not coded. Nothing is
// known of applied entries, nor of entries behind a snapshot that the host has yet to
// apply.
func (c *Coder) slotsOf(id ecraft.ID, before []*pb.Entry, envs []*ecraft.Envelope) (slots int, known bool) {
	if len(before) > 0 && id.Index >= before[0].GetIndex() {
		i := id.Index - before[0].GetIndex()
		if env := envs[i]; env != nil && before[i].GetTerm() == id.Term {
			return env.Slots, true
		}
		return 0, true
	}
	if id.Index <= c.log.Applied() || id.Index < c.log.First() {
		return 0, false
	}
	if rec := c.ledger.find(id.Index); rec != nil && rec.id == id {
		return rec.hdr.Slots, true
	}
	return 0, true
}

// Appended notes new entries of the log. Here the ledger learns where an entry stands, also
// one that this leader has made.
func (c *Coder) Appended(ents []*pb.Entry) {
	if l := c.leads; l != nil && len(l.made) > 0 {
		l.appended(ents)
	}
	if f := c.fresh; len(f.ents) > 0 && f.ents[0] == ents[0] {
		c.took(f.ents, f.envs)
	}
}

// took notes entries with this node's units. envs are the entries' envelopes.
func (c *Coder) took(ents []*pb.Entry, envs []*ecraft.Envelope) {
	for i, env := range envs {
		if env != nil {
			c.note(idOf(ents[i]), env)
		}
	}
	c.forgetting()
}

// note adds an envelope of the log to the ledger.
func (c *Coder) note(id ecraft.ID, env *ecraft.Envelope) {
	c.spans.add(id.Index)
	if env.Kind == ecraft.Coded {
		hdr := env.Header // a copy: the envelope would keep the units in memory
		rec := &record{id: id, hdr: &hdr, bornTick: c.ticks, born: c.now(), whole: env.Payload != nil}
		c.reads(env.Encoder)
		for _, id := range env.Members {
			c.reads(id)
		}
		rec.complete = rec.whole || c.store.Expect(id, rec.hdr, env.Own)
		c.ledger.add(rec)
	}
	for i, rider := range env.Riders {
		c.ledger.ride(id.Index, rider)
		if u := env.RiderUnits[i]; u.Count > 0 {
			// Bad units count as absent: other members have more.
			_ = c.unitsArrived(ecraft.ID{Term: rider.Term, Index: rider.Index}, c.id, u)
		}
	}
}

// Truncated forgets entries from index on, which are about to leave the log.
func (c *Coder) Truncated(index uint64) {
	c.ledger.cut(index)
	c.store.Cut(index)
	c.later.Cut(index)
	if _, stored := c.log.Stored(); c.spans.last() >= index {
		if unwritten := c.stale > stored; !unwritten || index < c.stale {
			c.stale = index
		}
		c.spans.cut(index)
	}
	for i := range c.wanted {
		if i >= index {
			delete(c.wanted, i)
		}
	}
}

// Applied forgets all that was only needed to apply entries up to index.
func (c *Coder) Applied(index uint64) {
	c.shareUpTo(index)
	for _, rec := range c.ledger.recs {
		if rec.id.Index > index {
			break
		}
		c.unpin(rec)
	}
	c.ledger.forgetUpTo(index)
	c.noRoomFrom = 0
	if x := &c.ledger.riders; len(x.carriers) > 0 {
		if first := c.log.First(); first > x.first {
			x.first = first
			x.keep(first, noLimit)
		}
	}
	c.store.Applied(index)
	if c.leads != nil {
		c.leads.workOnChange() // a change may have waited for this report
	}
}

// Restored forgets everything, because a snapshot is about to take the place of the
// log. Units that were held back leave before.
func (c *Coder) Restored(index uint64) {
	c.shareUpTo(index)
	c.ledger = ledger{riders: riders{from: index + 1}}
	c.spans, c.stale = spans{before: index}, 0
	c.store.Cut(0)
	c.store.Applied(index)
	c.later.Cut(0)
	clear(c.wanted)
	clear(c.accounts) // a member may have left meanwhile, and another node have its id
}

// pin keeps the store's units or payload of an entry until the entry is applied.
func (c *Coder) pin(rec *record) {
	if !rec.pinned {
		rec.pinned = c.store.Pin(rec.id)
	}
}

func (c *Coder) unpin(rec *record) {
	if rec.pinned {
		c.store.Unpin(rec.id)
		rec.pinned = false
	}
}

// unpinAll ends all pins and wants when a leadership ends, or a won term is given up.
// Later would be wrong: a want that ends in the next term could unpin a payload that
// the node then needs to recover.
func (c *Coder) unpinAll() {
	for _, rec := range c.wanted {
		c.unpin(rec)
	}
	clear(c.wanted)
	for _, rec := range c.ledger.recs {
		c.unpin(rec)
	}
}
