// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"sort"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// ledger is what the headers in the log say, for entries that are not applied:
// one record for each coded entry. It is derived from the log and nothing else,
// and is made anew from it after a restart.
type ledger struct {
	// recs are the records in order of index. Those of applied entries go.
	recs []*record
	// ready is the number of leading records that are complete.
	ready int
	// riders are also those for applied entries.
	riders riders
	// words is the bytes of the payloads that records keep with their codewords,
	// bare a number of leading records that keep none.
	words, bare int
}

// record is a coded entry.
type record struct {
	id  entryID
	hdr *ecraft.Header
	// raised are the riders for this entry, in order of the entries that carry
	// them.
	raised []raise
	// complete says that this node can produce the payload.
	complete bool
	// covered says, at a leader, that the units of the header alone satisfy
	// the commit rule. It is forgotten when the configuration changes.
	covered bool
	// whole says that the log has the payload, and not the store.
	whole bool
	// unpushed says that nobody will push units of it any more: they are to be
	// asked for.
	unpushed bool
	// pinned says that the store must not give the payload up.
	pinned bool
	// damaged says that this node's log has lost units that it had.
	damaged bool

	// word is the codeword, at a leader that has made one. nil otherwise.
	word *ecraft.Codeword
	// plan is what the policy expected, born when the entry was appended, and
	// hedgeAt when it is overdue; 0: no timer.
	plan          ecraft.Plan
	born, hedgeAt time.Duration
	// looked says that it was hedged, or could not be: hedgeAt says when to look
	// again, whoever is silent.
	looked bool
	// bornTick is the tick of that, retryTick the first at which to look again.
	bornTick, retryTick int
	// wantedAt is the tick at which it was wanted for another member.
	wantedAt int
	// since is when the entry was known to be committed here, for metrics.
	since time.Duration
}

// raise is a rider: from the entry at index at on, slots hold so many units.
type raise struct {
	at     uint64
	totals []uint8
	// without are members that were sent the carrier without these units; noted
	// while a change of the members is checked.
	without []uint64
}

// at returns the position of the first record at or behind index.
func (g *ledger) at(index uint64) int {
	return sort.Search(len(g.recs), func(i int) bool { return g.recs[i].id.index >= index })
}

// find returns the record of an entry, or nil.
func (g *ledger) find(index uint64) *record {
	if i := g.at(index); i < len(g.recs) && g.recs[i].id.index == index {
		return g.recs[i]
	}
	return nil
}

func (g *ledger) add(rec *record) { g.recs = append(g.recs, rec) }

// ride notes a rider that an entry of the log carries.
func (g *ledger) ride(at uint64, r ecraft.Rider) {
	g.riders.add(r.ID, at)
	if rec := g.find(r.Index); rec != nil && rec.id.term == r.Term {
		rec.raised = append(rec.raised, raise{at: at, totals: r.Totals})
	}
}

// cut forgets what stands in entries from index on.
func (g *ledger) cut(index uint64) {
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

// release forgets applied entries.
func (g *ledger) release(index uint64) {
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

// incomplete returns the first record whose payload is lacking, or nil.
func (g *ledger) incomplete() *record {
	for g.ready < len(g.recs) && g.recs[g.ready].complete {
		g.ready++
	}
	if g.ready == len(g.recs) {
		return nil
	}
	return g.recs[g.ready]
}

// lose notes that a payload that was complete no longer is.
func (g *ledger) lose(rec *record) {
	rec.complete = false
	g.ready = min(g.ready, g.at(rec.id.index))
}

// incomplete returns the first record whose payload is lacking, or nil. What the
// store gave up for lack of room is lacking again.
func (c *coded) incomplete() *record {
	if from, ok := c.store.Forgot(); ok {
		for _, rec := range c.ledger.recs[c.ledger.at(from):] {
			if rec.whole || c.store.Known(coID(rec.id)) {
				continue
			}
			rec.unpushed = true
			if rec.complete {
				c.ledger.lose(rec)
			}
		}
	}
	return c.ledger.incomplete()
}

// keep has a record of the ledger keep its codeword.
func (g *ledger) keep(rec *record, word *ecraft.Codeword) {
	rec.word = word
	g.words += rec.hdr.PayloadLen
	g.bare = min(g.bare, g.at(rec.id.index))
}

// trim drops the oldest codewords, which can be made again, where their payloads
// are more bytes than the budget. Nobody must be at work with one.
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

// holds returns how many units of the entry a member holds if its log agrees
// with this one up to match, as far as riders at or below upTo count. A member
// without a slot was sent the whole payload, or made it.
func (rec *record) holds(member, match, upTo uint64) int {
	if match < rec.id.index {
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

// read looks at entries that a leader sent before anything is done about them.
// It refuses those that this node could not make use of, now or later.
func (c *coded) read(ents []*pb.Entry) ([]*ecraft.Envelope, error) {
	if c == nil {
		return nil, nil
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
	c.lastCoded = id.index
	if env.Kind == ecraft.Coded {
		hdr := env.Header // and not the envelope, which keeps the units in memory
		rec := &record{id: id, hdr: &hdr, bornTick: c.ticks, born: c.now()}
		c.ledger.add(rec)
		for _, member := range env.Members {
			c.account(member).reads(true)
		}
		c.account(env.Encoder).reads(true)
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
	for _, rec := range c.ledger.recs {
		if rec.id.index > index {
			break
		}
		c.unpin(rec)
	}
	c.ledger.release(index)
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
// that gave up the term it had won.
func (c *coded) unpinAll() {
	if c == nil {
		return
	}
	for _, rec := range c.ledger.recs {
		c.unpin(rec)
	}
}
