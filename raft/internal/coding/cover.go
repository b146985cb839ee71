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

// rule is the commit rule of this node's ledger, for the voters that count.
type rule struct {
	*node
	ledger *ledger
}

// matches tells how far members hold the log durably.
type matches interface{ match(id uint64) uint64 }

type said func(id uint64) uint64

func (s said) match(id uint64) uint64 { return s(id) }

// present is members that acknowledge the whole log; the others acknowledge nothing.
type present func(id uint64) bool

func (p present) match(id uint64) uint64 {
	if p(id) {
		return noLimit
	}
	return 0
}

// upTo returns the highest index up to k that may be committed, or an index at or below
// the commit index.
func (r *rule) upTo(k uint64, by matches) uint64 {
	committed := r.log.Committed()
	for k > committed {
		low := k
		for _, rec := range r.ledger.behind(committed) {
			if rec.id.Index > k {
				break
			}
			if !r.holds(rec, k, by) {
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

// holds reports whether the rule holds for an entry if riders up to upTo count.
func (r *rule) holds(rec *record, upTo uint64, by matches) bool {
	return rec.covered || r.enough(rec, upTo, by)
}

func (r *rule) enough(rec *record, upTo uint64, by matches) bool {
	for _, v := range r.raft.Electorate().Sets() {
		if !coveredIn(v, rec, upTo, by) {
			return false
		}
	}
	return true
}

// cover reports whether the units of the header alone satisfy the rule, and
// remembers it.
func (r *rule) cover(rec *record) bool {
	rec.covered = len(rec.raised) == 0 && r.holds(rec, noLimit, r.node)
	return rec.covered
}

// uncover forgets which entries satisfy the commit rule.
func (r *rule) uncover() {
	for _, rec := range r.ledger.recs {
		rec.covered = false
	}
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

// levelOf returns the level at which the members in alive can commit: so many of the
// members that any half leaves must hold a payload together.
func (r *rule) levelOf(alive func(id uint64) bool) int {
	level := ecraft.MaxUnits
	for _, v := range r.raft.Electorate().Sets() {
		if len(v) > 0 {
			level = min(level, countIf(v, alive)-len(v)/2)
		}
	}
	return level
}

func countIf(v quorum.MajorityConfig, ok func(id uint64) bool) (n int) {
	for id := range v {
		if ok(id) {
			n++
		}
	}
	return n
}

func anybody(uint64) bool { return true }
func nobody(uint64) bool  { return false }

// enoughWith reports whether an entry could be committed if only the members in alive
// acknowledged the whole log.
func (r *rule) enoughWith(rec *record, alive present) bool { return r.enough(rec, noLimit, alive) }
