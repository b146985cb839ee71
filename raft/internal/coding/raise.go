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

// raiser appends carriers.
type raiser struct {
	rule
	words    *words
	wants    *wants
	unplaced *unplaced
}

// raise appends carriers with which the members in alive (this node is included if it
// is among them) could commit everything up to the end of the log. The result is the
// number of entries that ride; 0 if no entry needs units, or if no carrier would help
// now.
func (x *raiser) raise(alive func(id uint64) bool) int {
	alive = x.voting(alive)
	level := x.levelOf(alive)
	if level < 1 || len(x.unplaced.made) > 0 {
		return 0
	}
	var late []rising
	for _, rec := range x.ledger.behind(x.log.Committed()) {
		if x.enoughWith(rec, alive) {
			continue
		}
		word, err := x.words.word(rec)
		if err != nil {
			x.wants.want(rec)
			return 0
		}
		late = append(late, rising{rec: rec, word: word})
	}
	x.appendCarriers(late, level, alive, nil)
	return len(late)
}

// voting leaves those in alive that vote in some set that counts: riders for learners would
// help no commit.
func (x *raiser) voting(alive func(id uint64) bool) func(id uint64) bool {
	sets := x.raft.Electorate().Sets()
	votes := func(id uint64) bool {
		return slices.ContainsFunc(sets, func(v quorum.MajorityConfig) bool { _, ok := v[id]; return ok })
	}
	return func(id uint64) bool { return votes(id) && alive(id) }
}

// cost returns the bytes of units that raise would send.
func (x *raiser) cost(alive func(id uint64) bool) (bytes int) {
	alive = x.voting(alive)
	level := x.levelOf(alive)
	for _, rec := range x.ledger.behind(x.log.Committed()) {
		if x.enoughWith(rec, alive) {
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

// rising is an entry that is to be raised, with its codeword.
type rising struct {
	rec  *record
	word *ecraft.Codeword
}

// appendCarriers asks for as many carriers as the entries need. stood, if set, hears where
// each entry's carrier stands.
func (x *raiser) appendCarriers(late []rising, level int, alive func(id uint64) bool, stood func(rec *record, at uint64)) {
	most := int(min(x.cfg.MaxSizePerMsg, carrierBytes))
	for len(late) > 0 {
		n, bytes := 0, 0
		for n < len(late) && n < ridersPerCarrier {
			hdr := late[n].rec.hdr
			if bytes += hdr.UnitsAt(level) * hdr.UnitLen(); bytes > most && n > 0 {
				break
			}
			n++
		}
		x.appendCarrier(late[:n], level, alive, stood)
		late = late[n:]
	}
}

// appendCarrier asks for an entry in which units ride that bring the members in
// alive to a level.
func (x *raiser) appendCarrier(late []rising, level int, alive func(id uint64) bool, stood func(rec *record, at uint64)) {
	h := &ecraft.Header{Kind: ecraft.Carrier, Encoder: x.id, Riders: make([]ecraft.Rider, len(late))}
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
	x.unplaced.append(ecraft.Seal(nil, h, x.id, x.cfg.ClearPrefix, nil, words), func(id ecraft.ID) {
		for i, r := range h.Riders {
			x.ledger.ride(id.Index, r)
			if stood != nil {
				stood(late[i].rec, id.Index)
			}
		}
		x.ledger.spans.add(id.Index)
	})
}

// hedger has late entries raised.
type hedger struct {
	rule
	accounts *accounts
	slots    *slots
	raiser   *raiser
	// next is when to look for late entries, by the clock; 0: there is no entry with a
	// timer.
	next time.Duration
	// credit is what hedges may still send, in bytes.
	credit int
	// stored is when this leader's host last reported entries as stored.
	stored moment
}

// hedge raises late entries: entries whose time is over or, without a clock, entries
// that have waited for lateTicks. The units go to the members that have answered,
// because these will answer again. If the first entry waits for a member that has
// fallen silent, the entry is raised at once, at the other members.
//
// Nothing is raised while leadership is handed over, as nothing is proposed: a carrier would make
// this log longer than that of the heir, whom nobody would then elect. A transfer that fails has
// ended before the next tick raises what is late.
func (h *hedger) hedge() {
	if heir, _ := h.raft.Transferee(); heir != 0 {
		return
	}
	now := h.now()
	first := true
	for _, rec := range h.ledger.behind(h.log.Committed()) {
		if rec.covered || h.cover(rec) {
			continue
		}
		there, credit := h.holders(rec, now), h.credit
		if !h.late(rec, now) {
			if lost := first && !rec.looked && h.waitsForLost(rec, now); !lost {
				first = false
				continue
			}
			there = func(id uint64) bool { return !h.lost(rec, id, now) }
			credit /= 2 // the silence may be jitter; the rest is for late entries
		}
		waived := h.overdue(rec) || ecraft.HedgeWaived(rec.plan, now-rec.born, rec.plan.Silence > 0 && !h.waitsForLost(rec, now))
		alive := func(id uint64) bool { return there(id) && h.accounts.healthy(id) }
		if h.levelOf(alive) < 1 || h.takesItsTime(rec, alive, now) {
			h.postpone(rec, now)
			break // a later answer is for the entries behind, too
		}
		if cost := h.raiser.cost(alive); cost > credit && !waived && rec.hedgeAt > 0 {
			h.postpone(rec, now)
			break
		} else if n := h.raiser.raise(alive); n > 0 {
			h.credit = max(h.credit-cost, 0)
			kind := Hedged
			if !h.othersAreWell(alive) {
				kind = Fallback
			}
			h.emit(Event{Kind: kind, Index: rec.id.Index, Count: n, Bytes: cost})
			h.Ask(extend.Effect{Do: extend.Spread})
		}
		h.postpone(rec, now)
		break
	}
}

// sealed sets the timer of an entry of this leader, and lets its bytes pay for hedges.
func (h *hedger) sealed(rec *record) {
	if after := ecraft.HedgeAfter(rec.plan); after > 0 && rec.born > 0 {
		rec.hedgeAt = rec.born + after
		if rec.plan.Silence > 0 {
			after = min(after, rec.plan.Predicted+rec.plan.Silence)
		}
		if h.next == 0 || rec.born+after < h.next {
			h.next = rec.born + after
		}
	}
	h.credit = min(h.credit+int(float64(rec.hdr.PayloadLen)*ecraft.HedgeBudget), maxCredit)
}

// maxCredit bounds what a quiet time may save up for hedges, in bytes.
const maxCredit = 4 << 20

// holders returns the members at which late entries, of which one is the first, are raised: those
// that hold the first durably, and go on storing. What is late commits with the last carrier or
// not at all, and a disk may hang behind the first late entry. This node is a member like the
// others.
func (h *hedger) holders(first *record, now time.Duration) func(id uint64) bool {
	last := first
	for _, rec := range h.ledger.behind(first.id.Index) {
		if h.late(rec, now) {
			last = rec
		}
	}
	return func(id uint64) bool {
		match := h.match(id)
		return match >= first.id.Index && (match >= last.id.Index || h.ticks-h.moved(id).tick < h.lateTicks())
	}
}

// lostAt returns when a member that owes an answer for an entry will have been silent
// for so long that the member counts as lost. While the link may be busy with the entry, the
// member is not silent.
func (h *hedger) lostAt(rec *record, id uint64) (at time.Duration, owes bool) {
	a := h.accounts.of[id]
	pr, follows := h.raft.Progress(id)
	if !follows || a == nil || rec.plan.Silence == 0 || rec.hedgeAt == 0 || pr.Match >= rec.id.Index {
		return 0, false
	}
	if s := rec.hdr.SlotOf(id); s < 0 || rec.hdr.Units[s] == 0 {
		return 0, false
	}
	return max(a.acked.at, rec.born+rec.plan.Predicted) + rec.plan.Silence, true
}

func (h *hedger) lost(rec *record, id uint64, now time.Duration) bool {
	at, owes := h.lostAt(rec, id)
	return owes && now >= at
}

// waitsForLost reports whether an entry cannot be committed without a lost member.
func (h *hedger) waitsForLost(rec *record, now time.Duration) bool {
	return slices.ContainsFunc(rec.hdr.Members, func(id uint64) bool { return h.lost(rec, id, now) }) &&
		!h.enoughWith(rec, func(id uint64) bool { return !h.lost(rec, id, now) })
}

// lateTicks is how many ticks make an entry late where no clock tells, and a member one that stores
// nothing: a part of an election timeout, which is many round trips.
func (h *hedger) lateTicks() int { return max(2, h.cfg.ElectionTick/3) }

func (h *hedger) late(rec *record, now time.Duration) bool {
	if rec.hedgeAt > 0 {
		return now >= rec.hedgeAt || h.overdue(rec) && h.ticks >= rec.retryTick
	}
	return h.ticks >= max(rec.retryTick, rec.bornTick+h.lateTicks())
}

// overdue reports whether an entry has waited for an election timeout. A new leader knows
// nothing of its followers, so its first entries have long predictions and little to pay for
// hedges, and one of the followers may have a disk that hangs.
func (h *hedger) overdue(rec *record) bool { return h.ticks-rec.bornTick >= h.cfg.ElectionTick }

// postpone sets the timer of an entry again: for the time that the entry was expected
// to take, or a tick.
func (h *hedger) postpone(rec *record, now time.Duration) {
	if rec.hedgeAt > 0 {
		rec.hedgeAt = now + max(rec.plan.Predicted, time.Millisecond)
		rec.looked = true
	}
	rec.retryTick = h.ticks + 1
}

// moved returns when a member last acknowledged a new entry, or this node's own last write; 0:
// never.
func (h *hedger) moved(id uint64) moment {
	if id == h.id {
		return h.stored
	}
	if a := h.accounts.of[id]; a != nil {
		return a.acked
	}
	return moment{}
}

// takesItsTime reports whether an entry may be late because of a queue: the answers to
// come would be enough, and the members that owe them are busy with earlier entries;
// or, without a prediction, no member is silent. The wait is bounded.
func (h *hedger) takesItsTime(rec *record, answered func(id uint64) bool, now time.Duration) bool {
	if rec.hedgeAt == 0 {
		return !h.overdue(rec) && h.othersAreWell(answered) && h.enoughWith(rec, anybody)
	}
	pace := max(rec.plan.Predicted, time.Millisecond)
	coming := func(id uint64) bool {
		at := h.moved(id).at
		return answered(id) || at > 0 && now-at < pace && !h.lost(rec, id, now)
	}
	return !ecraft.HedgeWaived(rec.plan, now-rec.born, true) && h.levelOf(coming) >= 1 && h.enoughWith(rec, coming)
}

// othersAreWell reports whether all voters that have not answered were heard from.
func (h *hedger) othersAreWell(answered func(id uint64) bool) bool {
	for _, id := range h.slots.voters() {
		if !answered(id) && !h.accounts.healthy(id) {
			return false
		}
	}
	return true
}

// plan sets when to look for late entries next: when the first entry will be late.
// If entries are late already, the look waits for longer the longer they have waited,
// because the look costs more the more entries there are. The look is earlier if a
// member that the oldest entry waits for would be lost before.
func (h *hedger) plan(now time.Duration) {
	at, oldest, lost := time.Duration(0), now, time.Duration(0)
	for _, rec := range h.ledger.behind(h.log.Committed()) {
		if rec.hedgeAt == 0 || rec.covered {
			continue
		}
		if at == 0 && !rec.looked {
			lost = h.nextLost(rec, now)
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
	h.next = at
}

// nextLost returns when the next member that an entry waits for will be lost; 0: none
// will be.
func (h *hedger) nextLost(rec *record, now time.Duration) (next time.Duration) {
	for _, id := range rec.hdr.Members {
		if at, owes := h.lostAt(rec, id); owes && at > now && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}

// poll does the work due by the clock.
func (h *hedger) poll() {
	if h.next == 0 {
		return
	}
	if now := h.now(); now >= h.next {
		h.hedge()
		h.plan(now)
	}
}
