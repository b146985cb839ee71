// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import "time"

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
	s := Status{Plain: c.plain, Dense: c.ledger.dense(c.log), Completed: c.payloads.completeTo(), Released: c.log.Released(first), Memory: c.payloads.store.Bytes()}
	s.StuckAt, _ = c.wants.stuckAt()
	for _, rec := range c.ledger.recs {
		e := rec.status()
		e.Missing = c.payloads.missing(rec)
		s.Entries = append(s.Entries, e)
	}
	if l := c.leads; l != nil {
		s.Active, s.Waiting = l.sealer.mayCode(), l.call.waitsFor()
		s.Members = make(map[uint64]Member, len(c.accounts.of))
		for id, a := range c.accounts.of {
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

// Densify has new entries be plain, or ends that. In the end the node forgets who reads
// envelopes: with a dense log, members may have been restarted without coding, and a
// leader need not have heard of that. Flags of stuck members go as well: a leader
// withholds new entries from a stuck member, so that a stale flag would keep it from
// receiving the very entry whose acknowledgement clears the flag.
func (c *Coder) Densify(on bool) {
	again := c.plain && !on
	c.plain = on
	if !again || !c.ledger.dense(c.log) {
		return
	}
	c.accounts.askAnew()
	if c.leads != nil {
		c.leads.askAnew()
	}
}

// Deadline returns when, by the clock, Poll has something to do; 0: nothing.
func (c *Coder) Deadline() time.Duration {
	if c.leads == nil {
		return 0
	}
	return c.leads.hedger.next
}

// Poll does the work due by the clock.
func (c *Coder) Poll() {
	if c.leads != nil {
		c.leads.hedger.poll()
	}
}

// QueueHint tells a learning policy the bytes that wait to be sent to a member.
func (c *Coder) QueueHint(to uint64, bytes int, rate float64) {
	if c.leads != nil {
		if o := c.observer(); o != nil {
			o.QueueHint(to, bytes, rate, c.now())
		}
	}
}
