// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Entries come into the log, are replaced, and are applied: what a node notes of
// them, and what it refuses before.

// read looks at entries that a leader sent before anything is done about them.
// It refuses those that this node could not make use of, now or later.
func (c *coded) read(ents []*pb.Entry) ([]*ecraft.Envelope, error) {
	if c == nil {
		return nil, refuseEnvelopes(ents)
	}
	envs, err := c.openAll(ents)
	for i := 0; i < len(envs) && err == nil; i++ {
		if envs[i] != nil {
			err = c.plausible(idOf(ents[i]), envs[i], ents[:i], envs[:i])
		}
	}
	if err != nil {
		c.record(CodingEvent{Kind: CodingRejected, Peer: c.r.lead})
		return nil, fmt.Errorf("%w: %w", ErrMalformedMessage, err)
	}
	return envs, nil
}

// plausible checks an envelope from the network against the log it is to stand
// in: its units must be intact, and its riders must speak of coded entries
// before it.
func (c *coded) plausible(id entryID, env *ecraft.Envelope, before []*pb.Entry, envs []*ecraft.Envelope) error {
	if err := env.Own.Verify(); err != nil {
		return codingFault(id, err)
	}
	for i, rider := range env.Riders {
		if err := env.RiderUnits[i].Verify(); err != nil {
			return codingFault(id, fmt.Errorf("rider for %d/%d: %w", rider.Term, rider.Index, err))
		}
		if rider.Index >= id.index || rider.Term > id.term {
			return codingFault(id, fmt.Errorf("rider for %d/%d, which does not stand before it", rider.Term, rider.Index))
		}
		slots, known := c.slotsOf(entryID{term: rider.Term, index: rider.Index}, before, envs)
		if known && len(rider.Totals) != slots {
			return codingFault(id, fmt.Errorf("rider for %d/%d has %d totals, the entry has %d slots", rider.Term, rider.Index, len(rider.Totals), slots))
		}
	}
	return nil
}

// slotsOf returns the number of slots of an entry that is not applied, in the
// log or before the present one in the same message; 0 if it is not coded.
// Nothing is known of entries that are applied, or stand behind a snapshot that
// is about to be.
func (c *coded) slotsOf(id entryID, before []*pb.Entry, envs []*ecraft.Envelope) (slots int, known bool) {
	if len(before) > 0 && id.index >= before[0].GetIndex() {
		i := id.index - before[0].GetIndex()
		if env := envs[i]; env != nil && before[i].GetTerm() == id.term {
			return env.Slots, true
		}
		return 0, true
	}
	if id.index <= c.r.log.applied || id.index < c.r.log.firstIndex() {
		return 0, false
	}
	if rec := c.ledger.find(id.index); rec != nil && rec.id == id {
		return rec.hdr.Slots, true
	}
	return 0, true
}

// took notes entries that now stand in the log, with the units of them that
// this node stores. envs are their envelopes.
func (c *coded) took(ents []*pb.Entry, envs []*ecraft.Envelope) {
	if c == nil {
		return
	}
	for i, env := range envs {
		if env != nil {
			c.note(idOf(ents[i]), env)
		}
	}
	c.noteChanges(ents)
}

// note adds an envelope of the log to the ledger.
func (c *coded) note(id entryID, env *ecraft.Envelope) {
	c.spans.add(id.index)
	if env.Kind == ecraft.Coded {
		hdr := env.Header // and not the envelope, which keeps the units in memory
		rec := &record{id: id, hdr: &hdr, bornTick: c.ticks, born: c.now()}
		c.ledger.add(rec)
		for id := range c.r.members.Progress {
			if id == env.Encoder || env.SlotOf(id) >= 0 {
				c.account(id).reads(true)
			}
		}
		rec.whole = env.Payload != nil
		rec.complete = rec.whole || c.store.Expect(coID(id), rec.hdr, env.Own)
	}
	for i, rider := range env.Riders {
		c.ledger.ride(id.index, rider)
		if u := env.RiderUnits[i]; u.Count > 0 {
			// Units that prove bad are as good as absent: others have more.
			_ = c.unitsArrived(entryID{term: rider.Term, index: rider.Index}, c.r.id, u)
		}
	}
}

// replaced forgets what stood behind after, if entries are about to take its
// place.
func (c *coded) replaced(after entryID, ents []*pb.Entry) {
	if c != nil && len(ents) > 0 && after.index < c.r.log.last().index {
		c.dropFrom(after.index + 1)
	}
}

// dropFrom forgets entries from index on: they are about to be replaced.
func (c *coded) dropFrom(index uint64) {
	c.ledger.cut(index)
	c.store.Cut(index)
	c.later.Cut(index)
	c.dropChanges(index)
	if c.spans.last() >= index {
		if unwritten := c.stale > c.r.log.tail.base.index; !unwritten || index < c.stale {
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

// applied forgets what was needed to apply entries up to index.
func (c *coded) applied(index uint64) {
	if c == nil {
		return
	}
	c.shareUpTo(index)
	for _, rec := range c.ledger.recs {
		if rec.id.index > index {
			break
		}
		c.unpin(rec)
	}
	c.ledger.release(index)
	c.noRoomFrom = 0
	if x := &c.ledger.riders; len(x.carriers) > 0 {
		if first := c.r.log.firstIndex(); first > x.first {
			x.first = first
			x.keep(first, noLimit)
		}
	}
	c.store.Applied(index)
	c.changesApplied(index)
}

// pin keeps what the store has of an entry until it is applied.
func (c *coded) pin(rec *record) {
	if !rec.pinned {
		rec.pinned = c.store.Pin(coID(rec.id))
	}
}

func (c *coded) unpin(rec *record) {
	if rec.pinned {
		c.store.Unpin(coID(rec.id))
		rec.pinned = false
	}
}

// unpinAll lets go of what was kept to lead with, by a node that leads no more, or
// that gave up the term it had won. What was wanted is wanted no more: were it let
// go of later, that could be what the node needs to win the next term.
func (c *coded) unpinAll() {
	if c == nil {
		return
	}
	for _, rec := range c.wanted {
		c.unpin(rec)
	}
	clear(c.wanted)
	for _, rec := range c.ledger.recs {
		c.unpin(rec)
	}
}
