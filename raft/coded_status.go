// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// CodingStatus is a node's view of coded replication. The host owns it.
type CodingStatus struct {
	// Active says, at a leader, that new entries are coded: every member can
	// read them, and none asked for plain ones.
	Active bool
	// Plain says that Densify(true) is in force at this node.
	Plain bool
	// Dense says that no coded entry is left in this node's log. When it is true
	// at every member, with Densify(true) in force at all, they may go on one by
	// one with a library that does not code: not earlier, as those that have
	// coded entries would send them.
	Dense bool
	// Completed is the highest index up to which this node has all payloads.
	Completed uint64
	// Released is the highest index that this node will not ask for any more.
	Released uint64
	// StuckAt is the index of a committed entry that nobody reachable can
	// complete, or 0. A snapshot is needed, and the leader sends one.
	StuckAt uint64
	// Waiting says, at a leader, what a configuration change waits for before it is
	// appended; empty if none waits.
	Waiting string
	// Memory is the bytes of units and payloads that are kept in memory.
	Memory int
	// Entries are the coded entries that are not applied yet, in order.
	Entries []CodedEntry
	// Members is what a leader knows of each member.
	Members map[uint64]CodingMember
}

// CodedEntry is a coded entry of the log.
type CodedEntry struct {
	Index, Term uint64
	// Payload is the size of the payload in bytes, D the number of units that
	// restore it.
	Payload, D int
	// Encoder is the leader that coded it; it holds the whole payload.
	Encoder uint64
	// Units is how many units each other member is assigned, riders included.
	Units map[uint64]int
	// Complete says that this node has the payload.
	Complete bool
}

// CodingMember is what a leader knows of a member.
type CodingMember struct {
	// Capable says that it reads coded entries, Plain that it asked for none.
	Capable, Plain bool
	// Completed, Released and Applied are the indexes it last reported.
	Completed, Released, Applied uint64
	// Held is how long it takes to store an append.
	Held time.Duration
	// StuckAt is the index of an entry that it cannot complete, or 0.
	StuckAt uint64
}

// CodingStatus returns the node's view of coded replication; the zero value if
// Config.Coding is not set.
func (rn *RawNode) CodingStatus() CodingStatus {
	c := rn.raft.coded
	if c == nil {
		return CodingStatus{}
	}
	s := CodingStatus{Plain: c.plain, Completed: c.completeTo(), Released: c.releasedFrom(c.r.log.storedFirst()), Memory: c.store.Bytes()}
	s.Dense = c.dense()
	s.StuckAt, _ = c.stuckAt()
	for _, rec := range c.ledger.recs {
		s.Entries = append(s.Entries, rec.status())
	}
	if l := c.r.leading(); l != nil {
		s.Active, s.Waiting = l.mayCode(), l.waitsFor()
		s.Members = make(map[uint64]CodingMember, len(c.accounts))
		for id, a := range c.accounts {
			if l.members.Progress[id] != nil && id != l.id {
				s.Members[id] = CodingMember{
					Capable: a.capable, Plain: a.plain, Completed: a.completed, Released: a.released,
					Applied: a.applied, Held: a.held, StuckAt: a.stuckAt,
				}
			}
		}
	}
	return s
}

func (rec *record) status() CodedEntry {
	e := CodedEntry{
		Index: rec.id.index, Term: rec.id.term, Payload: rec.hdr.PayloadLen, D: rec.hdr.D,
		Encoder: rec.hdr.Encoder, Complete: rec.complete, Units: make(map[uint64]int, rec.hdr.Slots),
	}
	for _, id := range rec.hdr.Members {
		e.Units[id] = rec.holds(id, noLimit, noLimit)
	}
	return e
}

// Densify prepares a log for nodes that do not code, before a downgrade. With
// on set, new entries are plain in the whole group, as long as this node is
// heard from; coded ones go as the host compacts its log. CodingStatus.Dense
// says when this node's log has none left. Set it at every node, also after a
// restart, and wait for Dense at every node.
func (rn *RawNode) Densify(on bool) {
	if c := rn.raft.coded; c != nil {
		again := c.plain && !on
		c.plain = on
		if again && c.dense() {
			c.askAnew()
		}
	}
}

// askAnew forgets who reads envelopes: with a dense log, members may have been
// restarted without coding, and a leader need not have heard of it. Who was stuck has
// other words by now; held to the old ones it would get nothing that it could answer.
func (c *coded) askAnew() {
	for _, a := range c.accounts {
		a.capable, a.known, a.stuck, a.stuckAt = false, false, false, 0
	}
	if l := c.r.leading(); l != nil {
		clear(l.enc.stuck)
		// What acknowledges this entry is a process of now.
		l.enc.anewFrom = l.log.last().index + 1
		l.append(copyEntry(&pb.Entry{}, entryID{term: l.term, index: l.enc.anewFrom}))
		l.broadcastAppend()
	}
}

// dense reports whether Storage has no coded entry, nor is to get one: neither one
// that a snapshot stands for which is not written yet, nor one in whose place an entry
// stands that is not.
func (c *coded) dense() bool {
	l := c.r.log
	return c.spans.last() < l.storedFirst() && c.stale <= l.tail.base.index
}

// NextDeadline returns when, by Config.Clock, the node has something to do
// between ticks, and whether there is anything. The host calls [RawNode.Poll]
// then. Hosts that do not lose little: Tick and Step look, too.
func (rn *RawNode) NextDeadline() (time.Duration, bool) {
	l := rn.raft.leading()
	if l == nil || l.enc == nil || l.cfg.Clock == nil {
		return 0, false
	}
	return l.enc.hedgeNext, l.enc.hedgeNext > 0
}

// Poll does what is due by Config.Clock.
func (rn *RawNode) Poll() {
	if rn.raft.log.err == nil {
		rn.raft.pollCoding()
	}
}

func (r *raft) pollCoding() {
	l := r.leading()
	if l == nil || l.enc == nil || l.enc.hedgeNext == 0 {
		return
	}
	if now := l.coded.now(); now >= l.enc.hedgeNext {
		l.hedge()
		l.planHedge(now)
	}
}

// QueueHint tells a policy that learns what the host knows of a connection: the
// bytes that wait to be sent to a member, and the bytes a second at which they
// leave (0: unknown). Optional.
func (rn *RawNode) QueueHint(to uint64, bytes int, rate float64) {
	if l := rn.raft.leading(); l != nil {
		if o := l.observer(); o != nil {
			o.QueueHint(to, bytes, rate, l.coded.now())
		}
	}
}

// visible returns a member's progress as hosts see it: what is not complete there
// does not count as matching, as hosts truncate and hand over by it.
func (r *raft) visible(id uint64, pr tracker.Progress) tracker.Progress {
	if l := r.leading(); l != nil && l.coded != nil && id != l.id {
		if a := l.coded.accounts[id]; a != nil && a.capable && a.known {
			pr.Match = min(pr.Match, a.completed)
		}
	}
	return pr
}

// tickCoding lets a tick pass at a leader.
func (l *leader) tickCoding() {
	l.hedge()
	l.unblock()
	l.serveStuck()
	l.handOverIfStuck()
	if l.transferee != None && l.members.Progress[l.transferee] != nil {
		l.continueTransfer(l.transferee, l.members.Progress[l.transferee])
	}
	l.retryChange()
}

// unblock sends members what they waited for, if it can be made by now.
func (l *leader) unblock() {
	if l.enc == nil {
		return
	}
	for _, id := range l.enc.members {
		l.unblockOne(id)
	}
}

func (l *leader) unblockOne(id uint64) {
	if l.enc == nil || !l.enc.blocked[id] {
		return
	}
	if pr := l.members.Progress[id]; pr != nil {
		l.sendAppend(id, pr, false)
	}
}
