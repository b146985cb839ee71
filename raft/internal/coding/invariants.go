// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Broken returns which of the invariants that stand on the fields does not hold,
// or nil. It reads the whole log: simulations ask after each step, where the build
// tag "invariants" is set, and nobody else.
func (c *Coder) Broken() error {
	for _, check := range []func() error{c.brokenLedger, c.brokenPayloads, c.brokenRoles, c.brokenLeading, c.brokenCodewords} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// brokenLedger derives the ledger from the log once more.
func (c *Coder) brokenLedger() error {
	want := ledger{}
	lo, last := max(c.log.Applied()+1, c.log.First()), c.log.Last().Index
	for lo <= last {
		ents, err := c.log.Slice(lo, last+1, noLimit)
		if err != nil || len(ents) == 0 {
			return nil //nolint:nilerr // a log that cannot be read says nothing
		}
		for _, e := range ents {
			if !c.isEnvelope(e) {
				continue
			}
			hdr, _, err := ecraft.ParseHeader(e.GetData(), c.cfg.ClearPrefix) // a ledger says nothing of units
			if err != nil {
				continue
			}
			if k := c.ledger.spans.last(); e.GetIndex() > k {
				return fmt.Errorf("entry %d is not plain, the last span ends at %d", e.GetIndex(), k)
			}
			if hdr.Kind == ecraft.Coded {
				want.recs = append(want.recs, &record{id: idOf(e), hdr: hdr, whole: hdr.Whole(c.id)})
			}
			for _, r := range hdr.Riders {
				want.ride(e.GetIndex(), r)
			}
		}
		lo += uint64(len(ents))
	}
	return c.ledger.differs(&want)
}

// differs names a difference between the ledger and the ledger derived from the log.
func (g *ledger) differs(want *ledger) error {
	if len(g.recs) != len(want.recs) {
		return fmt.Errorf("the ledger has %d records, the log %d coded entries", len(g.recs), len(want.recs))
	}
	for i, rec := range g.recs {
		w := want.recs[i]
		switch {
		case rec.id != w.id || !slices.Equal(rec.hdr.Units, w.hdr.Units) || !slices.Equal(rec.hdr.Members, w.hdr.Members):
			return fmt.Errorf("record %d is of entry %v, the log has %v with units %v", i, rec.id, w.id, w.hdr.Units)
		case len(rec.raised) != len(w.raised):
			return fmt.Errorf("entry %v has %d riders, the log %d", rec.id, len(rec.raised), len(w.raised))
		case rec.whole != w.whole:
			return fmt.Errorf("entry %v: whole is %t, the log says %t", rec.id, rec.whole, w.whole)
		}
		for j, ra := range rec.raised {
			if ra.at != w.raised[j].at || !slices.Equal(ra.totals, w.raised[j].totals) {
				return fmt.Errorf("rider %d of entry %v is %v, the log says %v", j, rec.id, ra, w.raised[j])
			}
		}
	}
	return nil
}

// brokenPayloads looks whether what is called complete can be produced.
func (c *Coder) brokenPayloads() error {
	ready := 0
	for ready < len(c.ledger.recs) && c.ledger.recs[ready].complete {
		ready++
	}
	if c.ledger.ready > ready {
		return fmt.Errorf("%d leading records are called complete, %d are", c.ledger.ready, ready)
	}
	for _, rec := range c.ledger.recs {
		there := rec.whole || c.payloads.store.Payload(rec.id) != nil
		if rec.complete != there {
			return fmt.Errorf("entry %v: complete is %t, that the payload can be produced is %t", rec.id, rec.complete, there)
		}
		if rec.pinned && !rec.whole && !c.payloads.store.Known(rec.id) {
			return fmt.Errorf("entry %v is pinned, and the store does not know it", rec.id)
		}
	}
	if k := c.payloads.completeTo(); k < c.log.Applied() {
		return fmt.Errorf("complete up to %d, but %d is applied", k, c.log.Applied())
	}
	return nil
}

// brokenRoles looks for state of a role in a node with another role.
func (c *Coder) brokenRoles() error {
	role := c.raft.Role()
	switch {
	case c.role != role || c.term != c.raft.Term():
		return fmt.Errorf("the coder is in role %d of term %d, Raft in %d of %d", c.role, c.term, role, c.raft.Term())
	case (c.leads != nil) != (role == extend.Leader):
		return fmt.Errorf("role %d, and leads is %t", role, c.leads != nil)
	case (c.recovery != nil) != (role == extend.Winner):
		return fmt.Errorf("role %d, and recovery is %t", role, c.recovery != nil)
	case (c.wants.leader != nil) != (c.leads != nil):
		return fmt.Errorf("role %d, and a leader wants payloads: %t", role, c.wants.leader != nil)
	case c.payloads.pinsTail != (c.recovery != nil):
		return fmt.Errorf("role %d, and the tail is pinned: %t", role, c.payloads.pinsTail)
	case role == extend.Follower && len(c.payloads.wanted) > 0:
		return fmt.Errorf("a follower wants %d entries for others", len(c.payloads.wanted))
	case c.acked.Index > c.log.Last().Index && c.acked.Term == c.term:
		return fmt.Errorf("index %d is acknowledged, the log ends at %d", c.acked.Index, c.log.Last().Index)
	}
	for index, rec := range c.payloads.wanted {
		if rec.id.Index != index || !rec.pinned && index > c.log.Applied() {
			return fmt.Errorf("entry %v is wanted under index %d, pinned: %t", rec.id, index, rec.pinned)
		}
	}
	return nil
}

// brokenLeading looks at what a leader remembers of the commit rule, and of members.
func (c *Coder) brokenLeading() error {
	l := c.leads
	if l == nil {
		for _, rec := range c.ledger.recs {
			if rec.covered {
				return fmt.Errorf("entry %v is called covered by a node that does not lead", rec.id)
			}
		}
		return nil
	}
	for _, rec := range c.ledger.recs {
		base := record{id: rec.id, hdr: rec.hdr}
		if rec.covered && !l.holds(&base, noLimit, l.node) {
			return fmt.Errorf("entry %v is called covered, and its own units do not satisfy the commit rule", rec.id)
		}
	}
	for _, id := range l.slots.members {
		if !l.follows(id) || id == l.id {
			return fmt.Errorf("%x has a slot, and is no follower", id)
		}
	}
	if len(l.slots.members) < len(l.slots.round.Followers) || len(l.slots.members) != len(l.slots.units) {
		return fmt.Errorf("%d members have slots and %d have units, the policy sees %d", len(l.slots.members), len(l.slots.units), len(l.slots.round.Followers))
	}
	return nil
}

// brokenCodewords counts the bytes of codewords again.
func (c *Coder) brokenCodewords() error {
	words := 0
	for i, rec := range c.ledger.recs {
		if rec.word == nil {
			continue
		}
		if i < c.ledger.bare {
			return fmt.Errorf("record %d has a codeword, %d leading ones are called bare", i, c.ledger.bare)
		}
		words += rec.hdr.PayloadLen
	}
	if words != c.ledger.words {
		return fmt.Errorf("codewords have %d bytes of payload, %d are counted", words, c.ledger.words)
	}
	return nil
}
