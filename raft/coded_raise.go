// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"time"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// More units for entries that are late. A rider counts at its carrier, and the
// carrier commits only if everything before it does: so a carrier raises every
// entry before it that those who are there could not commit alone. One that
// leaves an entry out helps none.

// What rides in one entry is bounded in number, and in bytes for one member like
// the entries of a message: a carrier is sent in one piece.
const (
	ridersPerCarrier = 64
	carrierBytes     = 4 << 20
)

// raise appends carriers with which the members in alive, this node included if
// it is among them, could commit everything up to the end of the log. It
// returns how many entries ride; 0 if there is nothing to raise, or nothing
// that this could do about it now.
func (l *leader) raise(alive func(id uint64) bool) int {
	level := l.levelOf(alive)
	if level < 1 {
		return 0
	}
	g := &l.coded.ledger
	var late []rising
	for _, rec := range g.recs[g.at(l.log.committed+1):] {
		if l.enoughWith(rec, alive) {
			continue
		}
		word, err := l.word(rec)
		if err != nil {
			l.coded.want(rec)
			return 0
		}
		late = append(late, rising{rec: rec, word: word})
	}
	l.appendCarriers(late, level, alive)
	return len(late)
}

// levelOf returns the level at which the members in alive can commit: so many
// of those that any half leaves of them must hold a payload together.
func (l *leader) levelOf(alive func(id uint64) bool) int {
	level := ecraft.MaxUnits
	for _, v := range l.coded.voterSets() {
		if len(v) > 0 {
			level = min(level, countIf(v, alive)-len(v)/2)
		}
	}
	return level
}

func anybody(uint64) bool { return true }

func countIf(v quorum.MajorityConfig, ok func(id uint64) bool) (n int) {
	for id := range v {
		if ok(id) {
			n++
		}
	}
	return n
}

// enoughWith reports whether an entry could be committed if nobody but the
// members in alive were to acknowledge the whole log.
func (l *leader) enoughWith(rec *record, alive func(id uint64) bool) bool {
	for _, v := range l.coded.voterSets() {
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
	// at is the index of its carrier, once there is one.
	at uint64
}

// appendCarriers appends as many carriers as the entries need.
func (l *leader) appendCarriers(late []rising, level int, alive func(id uint64) bool) {
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
		l.appendCarrier(late[:n], level, alive)
		late = late[n:]
	}
}

// appendCarrier appends an entry in which units ride that bring the members in
// alive to a level.
func (l *leader) appendCarrier(late []rising, level int, alive func(id uint64) bool) {
	c := l.coded
	id := entryID{term: l.term, index: l.log.last().index + 1}
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
		h.Riders[i] = ecraft.Rider{ID: coID(rec.id), Totals: totals}
		words[i], late[i].at = up.word, id.index
		words[i].Prepare(units)
	}
	e := copyEntry(&pb.Entry{Type: pb.EntryNormal.Enum()}, id)
	e.Data = ecraft.Seal(nil, h, l.id, c.opt.ClearPrefix, nil, words)
	for _, r := range h.Riders {
		c.ledger.ride(id.index, r)
	}
	c.lastCoded = id.index
	l.append(e)
}

// acknowledged returns who has acknowledged an index, this node among them.
func (l *leader) acknowledged(index uint64) func(id uint64) bool {
	return func(id uint64) bool {
		pr := l.members.Progress[id]
		return id == l.id || pr != nil && pr.Match >= index
	}
}

// hedge raises what is late: entries whose time is over, without a clock those
// that have waited for lateTicks. It raises them at the members that have
// answered, whom nothing keeps from answering again.
func (l *leader) hedge() {
	g := &l.coded.ledger
	now := l.coded.now()
	for _, rec := range g.recs[g.at(l.log.committed+1):] {
		if !l.late(rec, now) || rec.covered {
			continue
		}
		waited := now - rec.born
		answered := l.acknowledged(rec.id.index)
		alive := func(id uint64) bool { return answered(id) && (id == l.id || l.coded.healthy(id)) }
		if l.levelOf(alive) < 1 || l.takesItsTime(rec, alive, now) {
			l.postpone(rec, now)
			break // who answers later answers for the ones behind, too
		}
		if cost := l.raiseCost(alive); cost > l.enc.credit && !ecraft.HedgeWaived(rec.plan, waited) && rec.hedgeAt > 0 {
			l.postpone(rec, now)
			break
		} else if n := l.raise(alive); n > 0 {
			l.enc.credit = max(l.enc.credit-cost, 0)
			kind := CodingHedged
			if !l.othersAreWell(alive) {
				kind = CodingFallback
			}
			l.coded.record(CodingEvent{Kind: kind, Index: rec.id.index, Count: n, Bytes: cost})
			l.broadcastAppend()
		}
		l.postpone(rec, now)
		break
	}
}

// lateTicks is how many ticks make an entry late where no clock tells: a part of
// an election timeout, which is many round trips.
func (l *leader) lateTicks() int { return max(2, l.cfg.ElectionTick/3) }

func (l *leader) late(rec *record, now time.Duration) bool {
	if rec.hedgeAt > 0 {
		return now >= rec.hedgeAt
	}
	return l.coded.ticks >= max(rec.retryTick, rec.bornTick+l.lateTicks())
}

// postpone sets the timer again: for the time that the entry was expected to
// take, or a tick.
func (l *leader) postpone(rec *record, now time.Duration) {
	if rec.hedgeAt > 0 {
		rec.hedgeAt = now + max(rec.plan.Predicted, time.Millisecond)
	}
	rec.retryTick = l.coded.ticks + 1
}

// takesItsTime reports whether what is late may be a queue: what is still to be
// answered would be enough, and those who are to answer it are busy answering
// what came before; or, where no prediction says what busy is, nobody is silent.
// That is not waited for for ever.
func (l *leader) takesItsTime(rec *record, answered func(id uint64) bool, now time.Duration) bool {
	if rec.hedgeAt == 0 {
		return l.coded.ticks-rec.bornTick < 2*l.cfg.ElectionTick && l.othersAreWell(answered) && l.enoughWith(rec, anybody)
	}
	pace := max(rec.plan.Predicted, time.Millisecond)
	coming := func(id uint64) bool {
		a := l.coded.accounts[id]
		return answered(id) || a != nil && a.ackedAt > 0 && now-a.ackedAt <= pace
	}
	return !ecraft.HedgeWaived(rec.plan, now-rec.born) && l.levelOf(coming) >= 1 && l.enoughWith(rec, coming)
}

// othersAreWell reports whether those who have not answered were heard from.
func (l *leader) othersAreWell(answered func(id uint64) bool) bool {
	for _, id := range l.enc.members {
		if !answered(id) && !l.coded.healthy(id) {
			return false
		}
	}
	return true
}

// raiseCost returns the bytes of units that raise would send.
func (l *leader) raiseCost(alive func(id uint64) bool) (bytes int) {
	level := l.levelOf(alive)
	g := &l.coded.ledger
	for _, rec := range g.recs[g.at(l.log.committed+1):] {
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

// planHedge sets when to look for late entries next: when the first will be, but
// if entries are late already not before some more time has passed, the more the
// longer they wait. Looking costs as much as there are entries.
func (l *leader) planHedge(now time.Duration) {
	g := &l.coded.ledger
	at, oldest := time.Duration(0), now
	for _, rec := range g.recs[g.at(l.log.committed+1):] {
		if rec.hedgeAt > 0 && !rec.covered {
			oldest = min(oldest, rec.born)
			if at == 0 || rec.hedgeAt < at {
				at = rec.hedgeAt
			}
		}
	}
	if at > 0 {
		at = max(at, now+time.Millisecond, now+(now-oldest)/8)
	}
	l.enc.hedgeNext = at
}
