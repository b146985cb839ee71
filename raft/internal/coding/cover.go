// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"go.etcd.io/raft/v3/quorum"

	"github.com/weftraft/weft/ecraft"
)

// The commit rule for coded entries. Index k may be committed when Raft's rule allows k
// and, for every entry up to k, the half (rounded up) of the voters with the fewest
// units of the entry could restore the entry:
//
//	the ceil(N/2) least holdings of the N voters sum to at least D.
//
// Strips are disjoint, so holdings add up. For an odd N the rule says that any
// majority decodes; for an even N that any half decodes, and so any majority of a
// configuration with one member more or less. Riders count in entries up to k only: a
// later leader may replace the entries behind k.

// Committable returns the highest index up to k that may be committed, or an index at
// or below the commit index.
func (c *Coder) Committable(k uint64) uint64 {
	if c.leads == nil {
		return k
	}
	return c.coveredUpTo(c.log.Committed(), k, c.leads)
}

// CommittableBy returns the same at any node, by what members are said to hold.
func (c *Coder) CommittableBy(k uint64, held func(id uint64) uint64) uint64 {
	return c.coveredUpTo(c.log.Committed(), k, said(held))
}

// matches tells how far members hold the log durably.
type matches interface{ match(id uint64) uint64 }

type said func(id uint64) uint64

func (s said) match(id uint64) uint64 { return s(id) }

// match returns the index acknowledged by a member; 0 for a node that is not followed.
func (l *leading) match(id uint64) uint64 {
	pr, _ := l.raft.Progress(id)
	return pr.Match
}

// coveredUpTo returns the highest index in (committed, k] that may be
// committed, or committed.
func (c *Coder) coveredUpTo(committed, k uint64, by matches) uint64 {
	g := &c.ledger
	for k > committed {
		low := k
		for _, rec := range g.recs[g.at(committed+1):] {
			if rec.id.Index > k {
				break
			}
			if !c.coveredBy(rec, k, by) {
				low = rec.id.Index - 1
				break
			}
		}
		if low == k {
			break
		}
		k = low // with fewer riders counting, look again
	}
	return k
}

// coveredBy reports whether the rule holds for an entry if riders up to upTo
// count.
func (c *Coder) coveredBy(rec *record, upTo uint64, by matches) bool {
	if rec.covered {
		return true
	}
	for _, v := range c.raft.Electorate().Sets() {
		if !coveredIn(v, rec, upTo, by) {
			return false
		}
	}
	return true
}

// cover reports whether the units of the header alone satisfy the rule, and
// remembers it.
func (l *leading) cover(rec *record) bool {
	rec.covered = len(rec.raised) == 0 && l.coveredBy(rec, noLimit, l)
	return rec.covered
}

// coveredIn reports whether the rule holds in one set of voters.
func coveredIn(v quorum.MajorityConfig, rec *record, upTo uint64, by matches) bool {
	if len(v) == 0 {
		return true
	}
	var buf [16]int
	held := buf[:0]
	for id := range v {
		held = append(held, rec.holds(id, by.match(id), upTo))
	}
	return ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held)
}

// committed notes a higher commit index.
func (l *leading) committed(from, to uint64) {
	g := &l.ledger
	for _, rec := range g.recs[g.at(from+1):] {
		if rec.id.Index > to {
			break
		}
		rec.hedgeAt = 0
		if len(rec.raised) == 0 {
			continue
		}
		alone := record{id: rec.id, hdr: rec.hdr}
		if !l.coveredBy(&alone, to, l) {
			l.emit(Event{Kind: RiderCommit, Index: rec.id.Index})
		}
	}
	if o := l.observer(); o != nil {
		o.Committed(to)
	}
}

// Committed hears that the commit index has risen: payloads take their time from
// then on.
func (c *Coder) Committed(from, to uint64) {
	if c.leads != nil {
		c.leads.committed(from, to)
	}
	c.noteHeldBack()
	if c.cfg.Clock == nil {
		return
	}
	now := c.now()
	g := &c.ledger
	for _, rec := range g.recs[g.at(from+1):] {
		if rec.id.Index > to {
			break
		}
		if rec.since = now; rec.complete {
			c.emit(Event{Kind: Delayed, Index: rec.id.Index})
		}
	}
}
