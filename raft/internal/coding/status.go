// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Status is raft.CodingStatus, where its fields are described.
type Status struct {
	Active, Plain, Dense         bool
	Completed, Released, StuckAt uint64
	Waiting                      string
	Memory                       int
	Entries                      []Entry
	Members                      map[uint64]Member
}

// Entry is raft.CodedEntry.
type Entry struct {
	Index, Term uint64
	Payload, D  int
	Encoder     uint64
	Units       map[uint64]int
	Complete    bool
	Missing     int
}

// Member is raft.CodingMember.
type Member struct {
	Capable, Plain               bool
	Completed, Released, Applied uint64
	Held                         time.Duration
	StuckAt                      uint64
}

// Status returns the node's view of coded replication.
func (c *Coder) Status() Status {
	first, _ := c.log.Stored()
	s := Status{Plain: c.plain, Dense: c.dense(), Completed: c.completeTo(), Released: c.log.Released(first), Memory: c.store.Bytes()}
	s.StuckAt, _ = c.stuckAt()
	for _, rec := range c.ledger.recs {
		e := rec.status()
		e.Missing = c.missing(rec)
		s.Entries = append(s.Entries, e)
	}
	if l := c.leads; l != nil {
		s.Active, s.Waiting = l.mayCode(), l.waitsFor()
		s.Members = make(map[uint64]Member, len(c.accounts))
		for id, a := range c.accounts {
			if c.follows(id) && id != c.id {
				s.Members[id] = Member{
					Capable: a.capable, Plain: a.plain, Completed: a.completed, Released: a.released,
					Applied: a.applied, Held: a.held, StuckAt: a.stuckAt,
				}
			}
		}
	}
	return s
}

func (rec *record) status() Entry {
	e := Entry{
		Index: rec.id.Index, Term: rec.id.Term, Payload: rec.hdr.PayloadLen, D: rec.hdr.D,
		Encoder: rec.hdr.Encoder, Complete: rec.complete, Units: make(map[uint64]int, rec.hdr.Slots),
	}
	for _, id := range rec.hdr.Members {
		e.Units[id] = rec.holds(id, noLimit, noLimit)
	}
	return e
}

// missing returns how many units this node lacks to restore an entry.
func (c *Coder) missing(rec *record) int {
	switch {
	case rec.complete:
		return 0
	case !c.store.Known(rec.id): // nothing of others is kept
		return max(0, rec.hdr.D-rec.holds(c.id, noLimit, noLimit))
	}
	units, _ := c.store.Missing(rec.id)
	return units
}

// Densify has new entries be plain, or ends that.
func (c *Coder) Densify(on bool) {
	again := c.plain && !on
	c.plain = on
	if again && c.dense() {
		c.askAnew()
	}
}

// askAnew forgets who reads envelopes. With a dense log, members may have been
// restarted without coding, and a leader need not have heard of that. Flags of
// stuck members go as well: a leader withholds new entries from a stuck member, so
// that a stale flag would keep it from receiving the very entry whose
// acknowledgement clears the flag.
func (c *Coder) askAnew() {
	for _, a := range c.accounts {
		a.capable, a.known, a.stuck, a.stuckAt = false, false, false, 0
	}
	if l := c.leads; l != nil {
		clear(l.stuck)
		// This entry is acknowledged by processes of now.
		l.anewFrom = noLimit
		l.append(nil, func(id ecraft.ID) { l.anewFrom = id.Index })
		c.Ask(extend.Effect{Do: extend.Spread})
	}
}

// dense reports whether Storage has no coded entry, also once the tail is written: no
// coded entry stands for a snapshot not written yet, and no entry not written yet stands
// in the place of a coded entry.
func (c *Coder) dense() bool {
	first, last := c.log.Stored()
	return c.spans.last() < first && c.stale <= last
}

// Deadline returns when, by the clock, Poll has something to do; 0: nothing.
func (c *Coder) Deadline() time.Duration {
	if c.leads == nil {
		return 0
	}
	return c.leads.hedgeNext
}

// Poll does the work due by the clock.
func (c *Coder) Poll() {
	l := c.leads
	if l == nil || l.hedgeNext == 0 {
		return
	}
	if now := l.now(); now >= l.hedgeNext {
		l.hedge()
		l.planHedge(now)
	}
}

// QueueHint tells a learning policy the bytes that wait to be sent to a member.
func (c *Coder) QueueHint(to uint64, bytes int, rate float64) {
	if c.leads != nil {
		if o := c.leads.observer(); o != nil {
			o.QueueHint(to, bytes, rate, c.now())
		}
	}
}

// ShownMatch returns the index up to which a member's log matches, as shown to hosts:
// incomplete entries do not count, because hosts truncate and hand over by that index.
func (c *Coder) ShownMatch(id, match uint64) uint64 {
	if a := c.accounts[id]; c.leads != nil && id != c.id && a != nil && a.capable && a.known {
		return min(match, a.completed)
	}
	return match
}
