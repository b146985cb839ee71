// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"sort"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// ledger has one record for each coded entry that is not applied, by the headers in the
// log. The ledger is derived from the log and nothing else, also after a restart.
type ledger struct {
	// recs are the records in order of index. Records of applied entries go.
	//
	// Invariant: a record for each coded entry of the log not applied, with the units
	// and riders that the log says.
	recs []*record
	// ready is the number of leading records known to be complete.
	//
	// Invariant: all of these are complete.
	ready int
	// riders also has the riders for applied entries.
	riders riders
	// spans is where the log has entries that are not plain.
	//
	// Invariant: no entry behind its last is an envelope.
	spans spans
	// stale is the first index at which Storage may still have a coded entry that
	// another has replaced: not once the tail begins behind the index.
	stale uint64
	// words is the bytes of the payloads that records keep with their codewords,
	// bare a number of leading records that keep none.
	//
	// Invariant: both equal a new count over the records.
	words, bare int
}

// record is a coded entry.
type record struct {
	id  ecraft.ID
	hdr *ecraft.Header
	// raised are the riders for this entry, in order of their carriers.
	raised []raise
	// complete says that this node can produce the payload.
	//
	// Invariant: if and only if the log or the store has the payload.
	complete bool
	// covered says, at a leader, that the units of the header alone satisfy the commit
	// rule. It is forgotten when the configuration changes, and with the leadership.
	//
	// Invariant: then the rule holds; never at another node.
	covered bool
	// whole says that the payload is in the log, and not in the store.
	//
	// Invariant: the envelope in the log has the payload.
	whole bool
	// unpushed says that no push will bring further units: this node must ask.
	unpushed bool
	// pinned says that the store must not give the payload up.
	//
	// Invariant: the store knows the entry.
	pinned bool
	// damaged says that this node's log has lost units.
	damaged bool

	// word is the codeword, once a leader has computed the codeword; nil otherwise.
	word *ecraft.Codeword
	// plan is the policy's plan, born when the entry was appended, and hedgeAt when the
	// entry is late; 0: no timer.
	plan          ecraft.Plan
	born, hedgeAt time.Duration
	// looked says that the entry was hedged, or could not be: hedgeAt says when to look
	// again, whichever members are silent.
	looked bool
	// bornTick is the tick of the append, retryTick the first at which to look again.
	bornTick, retryTick int
	// wantedAt is the tick at which the entry was first wanted for another member,
	// neededAt the last such tick.
	wantedAt, neededAt int
	// since is when the entry was known to be committed here, for metrics.
	since time.Duration
}

// raise is a rider: from the entry at index at on, slots hold so many units.
type raise struct {
	at     uint64
	totals []uint8
	// without are members to which the carrier went without these units; noted while a
	// change of the members is checked.
	without []uint64
}

// at returns the position of the first record at or behind index.
func (g *ledger) at(index uint64) int {
	return sort.Search(len(g.recs), func(i int) bool { return g.recs[i].id.Index >= index })
}

// find returns the record of an entry, or nil.
func (g *ledger) find(index uint64) *record {
	if i := g.at(index); i < len(g.recs) && g.recs[i].id.Index == index {
		return g.recs[i]
	}
	return nil
}

// behind returns the records behind an index, for example the commit index.
func (g *ledger) behind(index uint64) []*record { return g.recs[g.at(index+1):] }

func (g *ledger) add(rec *record) {
	g.recs = append(g.recs, rec)
	if rec.complete && g.ready == len(g.recs)-1 {
		g.ready++
	}
}

// ride notes a rider that an entry of the log carries. The number of slots was checked
// when the carrier came, unless the older entry was applied by then: a node that starts
// from an older state may meet a rider that fits no entry.
func (g *ledger) ride(at uint64, r ecraft.Rider) {
	g.riders.add(r.ID, at)
	if rec := g.find(r.Index); rec != nil && rec.id.Term == r.Term && len(r.Totals) == rec.hdr.Slots {
		rec.raised = append(rec.raised, raise{at: at, totals: r.Totals})
	}
}

// cut forgets entries from index on, which are about to leave the log.
func (g *ledger) cut(log extend.Log, index uint64) {
	if _, stored := log.Stored(); g.spans.last() >= index {
		if unwritten := g.stale > stored; !unwritten || index < g.stale {
			g.stale = index
		}
		g.spans.cut(index)
	}
	g.riders.keep(0, index)
	i := g.at(index)
	for _, rec := range g.recs[i:] {
		g.drop(rec)
	}
	clear(g.recs[i:])
	g.recs = g.recs[:i]
	g.ready, g.bare = min(g.ready, i), min(g.bare, i)
	for _, rec := range g.recs {
		n := len(rec.raised)
		for n > 0 && rec.raised[n-1].at >= index {
			n--
		}
		rec.raised = rec.raised[:n]
	}
}

// restored begins anew behind a snapshot.
func (g *ledger) restored(index uint64) {
	*g = ledger{riders: riders{from: index + 1}, spans: spans{before: index}}
}

// dense reports whether Storage has no coded entry, also once the tail is written: no
// coded entry stands for a snapshot not written yet, and no entry not written yet stands
// in the place of a coded entry.
func (g *ledger) dense(log extend.Log) bool {
	first, last := log.Stored()
	return g.spans.last() < first && g.stale <= last
}

// forgetUpTo forgets applied entries.
func (g *ledger) forgetUpTo(index uint64) {
	i := g.at(index + 1)
	if i == 0 {
		return
	}
	for _, rec := range g.recs[:i] {
		g.drop(rec)
	}
	clear(g.recs[:i])
	g.recs = g.recs[i:]
	g.ready, g.bare = max(g.ready-i, 0), max(g.bare-i, 0)
}

// forgetRiders forgets carriers that the log has lost at its front.
func (g *ledger) forgetRiders(log extend.Log) {
	x := &g.riders
	if len(x.carriers) == 0 {
		return // most logs have none, and the log's front is behind a lock
	}
	if first := log.First(); first > x.first {
		x.first = first
		x.keep(first, noLimit)
	}
}

// incomplete returns the first record whose payload is lacking, or nil.
func (g *ledger) incomplete() *record {
	for _, rec := range g.recs[g.ready:] {
		if !rec.complete {
			return rec
		}
	}
	return nil
}

// complete notes whether a payload is here.
func (g *ledger) complete(rec *record, here bool) {
	if rec.complete = here; !here {
		g.ready = min(g.ready, g.at(rec.id.Index))
		return
	}
	for g.ready < len(g.recs) && g.recs[g.ready].complete {
		g.ready++
	}
}

// keep has a record of the ledger keep its codeword.
func (g *ledger) keep(rec *record, word *ecraft.Codeword) {
	rec.word = word
	g.words += rec.hdr.PayloadLen
	g.bare = min(g.bare, g.at(rec.id.Index))
}

// trim drops the oldest codewords, which can be made again, if their payloads are more
// bytes than the budget. No codeword must be in use.
func (g *ledger) trim(budget int) {
	for ; g.words > budget && g.bare < len(g.recs)-1; g.bare++ {
		g.drop(g.recs[g.bare])
	}
}

// drop gives back the memory of the codeword.
func (g *ledger) drop(rec *record) {
	if rec.word != nil {
		g.words -= rec.hdr.PayloadLen
		rec.word.Free()
		rec.word = nil
	}
}

// holds returns how many units of the entry a member holds if its log agrees with this
// one up to match, and riders at or below upTo count. A member without a slot was sent
// the whole payload, or encoded it.
func (rec *record) holds(member, match, upTo uint64) int {
	if match < rec.id.Index {
		return 0
	}
	s := rec.hdr.SlotOf(member)
	if s < 0 {
		return rec.hdr.D
	}
	units := rec.hdr.Units[s]
	for _, ra := range rec.raised {
		if ra.at > upTo || ra.at > match {
			break
		}
		units = max(units, ra.totals[s])
	}
	return int(units)
}
