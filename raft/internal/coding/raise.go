// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/quorum"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// More units for entries that are late. A rider counts at its carrier, and the carrier
// commits only after all entries before it. So a carrier raises every earlier entry
// that the members which are alive could not commit alone: with one entry left out, no
// entry is helped.

// Riders of one carrier are bounded in number, and in bytes for one member like the
// entries of a message, because a carrier is sent in one piece.
const (
	ridersPerCarrier = 64
	carrierBytes     = 4 << 20
)

// raise appends carriers with which the members in alive (this node is included if it
// is among them) could commit everything up to the end of the log. The result is the
// number of entries that ride; 0 if no entry needs units, or if no carrier would help
// now.
func (l *leading) raise(alive func(id uint64) bool) int {
	level := l.levelOf(alive)
	if level < 1 || len(l.made) > 0 {
		return 0
	}
	g := &l.ledger
	var late []rising
	for _, rec := range g.recs[g.at(l.log.Committed()+1):] {
		if l.enoughWith(rec, alive) {
			continue
		}
		word, err := l.word(rec)
		if err != nil {
			l.want(rec)
			return 0
		}
		late = append(late, rising{rec: rec, word: word})
	}
	l.appendCarriers(late, level, alive, nil)
	return len(late)
}

// levelOf returns the level at which the members in alive can commit: so many of the
// members that any half leaves must hold a payload together.
func (l *leading) levelOf(alive func(id uint64) bool) int {
	level := ecraft.MaxUnits
	for _, v := range l.raft.Electorate().Sets() {
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
func (l *leading) enoughWith(rec *record, alive func(id uint64) bool) bool {
	for _, v := range l.raft.Electorate().Sets() {
		var buf [16]int
		held := buf[:0]
		for id := range v {
			units := 0
			if alive(id) {
				units = rec.holds(id, noLimit, noLimit)
			}
			held = append(held, units)
		}
		if len(v) > 0 && !ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held) {
			return false
		}
	}
	return true
}

// rising is an entry that is to be raised, with its codeword.
type rising struct {
	rec  *record
	word *ecraft.Codeword
}

// appendCarriers asks for as many carriers as the entries need. stood, if set, hears where
// each entry's carrier stands.
func (l *leading) appendCarriers(late []rising, level int, alive func(id uint64) bool, stood func(rec *record, at uint64)) {
	most := int(min(l.cfg.MaxSizePerMsg, carrierBytes))
	for len(late) > 0 {
		n, bytes := 0, 0
		for n < len(late) && n < ridersPerCarrier {
			hdr := late[n].rec.hdr
			if bytes += hdr.UnitsAt(level) * hdr.UnitLen(); bytes > most && n > 0 {
				break
			}
			n++
		}
		l.appendCarrier(late[:n], level, alive, stood)
		late = late[n:]
	}
}

// appendCarrier asks for an entry in which units ride that bring the members in
// alive to a level.
func (l *leading) appendCarrier(late []rising, level int, alive func(id uint64) bool, stood func(rec *record, at uint64)) {
	h := &ecraft.Header{Kind: ecraft.Carrier, Encoder: l.id, Riders: make([]ecraft.Rider, len(late))}
	words := make([]*ecraft.Codeword, len(late))
	for i, up := range late {
		rec := up.rec
		totals := make([]uint8, rec.hdr.Slots)
		target := rec.hdr.UnitsAt(level)
		units := make([]int, len(totals))
		for s, member := range rec.hdr.Members {
			if alive(member) && target > int(rec.hdr.Units[s]) {
				totals[s], units[s] = uint8(target), target
			}
		}
		h.Riders[i] = ecraft.Rider{ID: rec.id, Totals: totals}
		words[i] = up.word
		words[i].Prepare(units)
	}
	l.append(ecraft.Seal(nil, h, l.id, l.cfg.ClearPrefix, nil, words), func(id ecraft.ID) {
		for i, r := range h.Riders {
			l.ledger.ride(id.Index, r)
			if stood != nil {
				stood(late[i].rec, id.Index)
			}
		}
		l.spans.add(id.Index)
	})
}

// acknowledged returns the members with an acknowledgement of an index, this node
// included.
func (l *leading) acknowledged(index uint64) func(id uint64) bool {
	return func(id uint64) bool {
		return id == l.id || l.match(id) >= index
	}
}

// hedge raises late entries: entries whose time is over or, without a clock, entries
// that have waited for lateTicks. The units go to the members that have answered,
// because these will answer again. If the first entry waits for a member that has
// fallen silent, the entry is raised at once, at the other members.
func (l *leading) hedge() {
	g := &l.ledger
	now := l.now()
	first := true
	for _, rec := range g.recs[g.at(l.log.Committed()+1):] {
		if rec.covered || l.cover(rec) {
			continue
		}
		there, credit := l.acknowledged(rec.id.Index), l.credit
		if !l.late(rec, now) {
			if lost := first && !rec.looked && l.waitsForLost(rec, now); !lost {
				first = false
				continue
			}
			there = func(id uint64) bool { return !l.lost(rec, id, now) }
			credit /= 2 // the silence may be jitter; the rest is for late entries
		}
		waived := ecraft.HedgeWaived(rec.plan, now-rec.born, rec.plan.Silence > 0 && !l.waitsForLost(rec, now))
		alive := func(id uint64) bool { return there(id) && (id == l.id || l.healthy(id)) }
		if l.levelOf(alive) < 1 || l.takesItsTime(rec, alive, now) {
			l.postpone(rec, now)
			break // a later answer is for the entries behind, too
		}
		if cost := l.raiseCost(alive); cost > credit && !waived && rec.hedgeAt > 0 {
			l.postpone(rec, now)
			break
		} else if n := l.raise(alive); n > 0 {
			l.credit = max(l.credit-cost, 0)
			kind := Hedged
			if !l.othersAreWell(alive) {
				kind = Fallback
			}
			l.emit(Event{Kind: kind, Index: rec.id.Index, Count: n, Bytes: cost})
			l.Ask(extend.Effect{Do: extend.Spread})
		}
		l.postpone(rec, now)
		break
	}
}

// lostAt returns when a member that owes an answer for an entry will have been silent
// for so long that the member counts as lost.
func (l *leading) lostAt(rec *record, id uint64) (at time.Duration, owes bool) {
	a := l.accounts[id]
	pr, follows := l.raft.Progress(id)
	if !follows || a == nil || rec.plan.Silence == 0 || rec.hedgeAt == 0 || pr.Match >= rec.id.Index {
		return 0, false
	}
	if s := rec.hdr.SlotOf(id); s < 0 || rec.hdr.Units[s] == 0 {
		return 0, false
	}
	return max(a.ackedAt, rec.born) + rec.plan.Silence, true
}

func (l *leading) lost(rec *record, id uint64, now time.Duration) bool {
	at, owes := l.lostAt(rec, id)
	return owes && now >= at
}

// waitsForLost reports whether an entry cannot be committed without a lost member.
func (l *leading) waitsForLost(rec *record, now time.Duration) bool {
	return slices.ContainsFunc(rec.hdr.Members, func(id uint64) bool { return l.lost(rec, id, now) }) &&
		!l.enoughWith(rec, func(id uint64) bool { return !l.lost(rec, id, now) })
}

// lateTicks is how many ticks make an entry late where no clock tells: a part of
// an election timeout, which is many round trips.
func (l *leading) lateTicks() int { return max(2, l.cfg.ElectionTick/3) }

func (l *leading) late(rec *record, now time.Duration) bool {
	if rec.hedgeAt > 0 {
		return now >= rec.hedgeAt
	}
	return l.ticks >= max(rec.retryTick, rec.bornTick+l.lateTicks())
}

// postpone sets the timer of an entry again: for the time that the entry was expected
// to take, or a tick.
func (l *leading) postpone(rec *record, now time.Duration) {
	if rec.hedgeAt > 0 {
		rec.hedgeAt = now + max(rec.plan.Predicted, time.Millisecond)
		rec.looked = true
	}
	rec.retryTick = l.ticks + 1
}

// takesItsTime reports whether an entry may be late because of a queue: the answers to
// come would be enough, and the members that owe them are busy with earlier entries;
// or, without a prediction, no member is silent. The wait is bounded.
func (l *leading) takesItsTime(rec *record, answered func(id uint64) bool, now time.Duration) bool {
	if rec.hedgeAt == 0 {
		return l.ticks-rec.bornTick < 2*l.cfg.ElectionTick && l.othersAreWell(answered) && l.enoughWith(rec, anybody)
	}
	pace := max(rec.plan.Predicted, time.Millisecond)
	coming := func(id uint64) bool {
		a := l.accounts[id]
		return answered(id) || a != nil && a.ackedAt > 0 && now-a.ackedAt < pace
	}
	return !ecraft.HedgeWaived(rec.plan, now-rec.born, true) && l.levelOf(coming) >= 1 && l.enoughWith(rec, coming)
}

// othersAreWell reports whether all members that have not answered were heard from.
func (l *leading) othersAreWell(answered func(id uint64) bool) bool {
	for _, id := range l.members {
		if !answered(id) && !l.healthy(id) {
			return false
		}
	}
	return true
}

// raiseCost returns the bytes of units that raise would send.
func (l *leading) raiseCost(alive func(id uint64) bool) (bytes int) {
	level := l.levelOf(alive)
	g := &l.ledger
	for _, rec := range g.recs[g.at(l.log.Committed()+1):] {
		if l.enoughWith(rec, alive) {
			continue
		}
		for s, member := range rec.hdr.Members {
			if more := rec.hdr.UnitsAt(level) - int(rec.hdr.Units[s]); more > 0 && alive(member) {
				bytes += more * rec.hdr.UnitLen()
			}
		}
	}
	return bytes
}

// planHedge sets when to look for late entries next: when the first entry will be late.
// If entries are late already, the look waits for longer the longer they have waited,
// because the look costs more the more entries there are. The look is earlier if a
// member that the oldest entry waits for would be lost before.
func (l *leading) planHedge(now time.Duration) {
	g := &l.ledger
	at, oldest, lost := time.Duration(0), now, time.Duration(0)
	for _, rec := range g.recs[g.at(l.log.Committed()+1):] {
		if rec.hedgeAt == 0 || rec.covered {
			continue
		}
		if at == 0 && !rec.looked {
			lost = l.nextLost(rec, now)
		}
		oldest = min(oldest, rec.born)
		if at == 0 || rec.hedgeAt < at {
			at = rec.hedgeAt
		}
	}
	if at > 0 {
		at = max(at, now+time.Millisecond, now+(now-oldest)/8)
	}
	if lost > 0 {
		at = min(at, max(lost, now+time.Millisecond))
	}
	l.hedgeNext = at
}

// nextLost returns when the next member that an entry waits for will be lost; 0: none
// will be.
func (l *leading) nextLost(rec *record, now time.Duration) (next time.Duration) {
	for _, id := range rec.hdr.Members {
		if at, owes := l.lostAt(rec, id); owes && at > now && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}
