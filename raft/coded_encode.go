// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// encoder is what a leader needs to code: who gets which slot, and what is on
// its way. It begins and ends with the leadership.
type encoder struct {
	// members are the followers by slot, voters first, then learners, in order
	// of id; round has them as the policy wants to see them. Both are made anew
	// when the configuration changes, and not changed: headers share members.
	members []uint64
	round   ecraft.Round
	units   []int

	// blocked are members that wait for entries this leader must complete.
	blocked map[uint64]bool
	// lagging is since when members are being sent what they missed.
	lagging map[uint64]time.Duration
	// waiting is a configuration change that waits for coverage.
	waiting *pb.Entry
	check   memberCheck
	// call is what voters to come have answered, while a change waits for them.
	call rollCall
	// anewFrom is the entry from which on acknowledgements say who reads envelopes.
	anewFrom uint64
	// askedHeaders is the tick of the last question for headers.
	askedHeaders int
	// hedgeNext is when to look for late entries, by the clock; 0: there is no
	// entry with a timer.
	hedgeNext time.Duration
	// credit is what hedges may still send, in bytes.
	credit int
	// stuck is how many ticks a member has been stuck.
	stuck map[uint64]int
}

func (l *leader) beginCoding() {
	l.enc = &encoder{blocked: map[uint64]bool{}, lagging: map[uint64]time.Duration{}, stuck: map[uint64]int{}}
	if o := l.observer(); o != nil {
		o.Reset(l.coded.now())
	}
	l.followPending()
	l.arrangeSlots()
}

// arrangeSlots gives each follower its slot, for entries from now on.
func (l *leader) arrangeSlots() {
	enc, was := l.enc, l.enc.members
	enc.members = nil
	for id, pr := range l.members.Progress {
		if id != l.id && !pr.IsLearner {
			enc.members = append(enc.members, id)
		}
	}
	slices.Sort(enc.members)
	voters := len(enc.members)
	for id, pr := range l.members.Progress {
		if id != l.id && pr.IsLearner {
			enc.members = append(enc.members, id)
		}
	}
	slices.Sort(enc.members[voters:])
	enc.units = make([]int, len(enc.members))
	// In a joint configuration each half must be able to decode: the smaller
	// one sets the level.
	smallest := len(l.members.Voters[0])
	if n := len(l.members.Voters[1]); n > 0 {
		smallest = min(smallest, n)
	}
	enc.round = ecraft.Round{
		Voters:    smallest,
		Layout:    ecraft.NewLayout(smallest, len(enc.members)),
		Followers: make([]ecraft.Member, len(enc.members)),
	}
	for i, id := range enc.members {
		enc.round.Followers[i] = ecraft.Member{ID: id, Voter: i < voters}
	}
	for _, rec := range l.coded.ledger.recs {
		rec.covered = false
	}
	if o := l.observer(); o != nil {
		now := l.coded.now()
		for _, id := range was {
			if !slices.Contains(enc.members, id) {
				o.Left(id)
				delete(enc.lagging, id)
			}
		}
		for _, id := range enc.members {
			if !slices.Contains(was, id) {
				o.Joined(id, now)
			}
		}
	}
}

// observer returns the policy if it learns and there is a clock to learn by.
func (l *leader) observer() ecraft.Observer {
	if l.enc == nil || l.cfg.Clock == nil {
		return nil
	}
	o, _ := l.coded.opt.Policy.(ecraft.Observer)
	return o
}

// mayCode reports whether every member can read coded entries, and wants to.
func (l *leader) mayCode() bool {
	if l.enc == nil || l.coded.plain || l.enc.round.Layout.D == 0 || !l.everyoneReads() {
		return false
	}
	for _, id := range l.enc.members {
		if l.coded.accounts[id].plain {
			return false
		}
	}
	// What is appended behind a change that brings voters is committed with them. One
	// that turned out not to read it could not be sent it, nor a snapshot of it: for ever.
	for id := range l.coded.pending.newest {
		if l.members.Progress[id] == nil {
			return false
		}
	}
	return true
}

// everyoneReads reports whether every member can read envelopes.
func (l *leader) everyoneReads() bool {
	for _, id := range l.enc.members {
		if a := l.coded.accounts[id]; a == nil || !a.capable {
			return false
		}
	}
	return true
}

// sealAll makes appended entries what this node stores. They share the memory of
// the proposal until then.
func (l *leader) sealAll(ents []*pb.Entry) {
	if l.enc == nil {
		return
	}
	for _, e := range ents {
		data := e.Data
		e.Data = nil
		l.seal(e, data)
	}
}

// ownEntry returns this leader's copy of a proposed entry. With coding it shares
// the payload until it is sealed.
func (l *leader) ownEntry(e *pb.Entry, id entryID) *pb.Entry {
	if l.enc == nil {
		return copyEntry(e, id)
	}
	own := copyShell(e, id)
	own.Data = e.Data
	return own
}

// errReserved refuses a payload that members without coding could not be told
// apart from an envelope.
var errReserved = errors.New("the payload begins with the mark of coded entries, and not every member can read those")

// isReserved reports whether a payload that stood in a log as it is could be taken for
// an envelope: by this node, or by one that starts with another clear prefix or none.
func (c *coded) isReserved(typ pb.EntryType, data []byte) bool {
	if typ != pb.EntryNormal {
		return false
	}
	_, foreign := ecraft.Detect(data)
	return foreign || ecraft.IsEnvelope(data, c.opt.ClearPrefix)
}

// seal makes an appended entry, in place, what this node stores: as it is, or
// with its payload in an envelope. data is the payload; the entry does not
// share its memory.
func (l *leader) seal(e *pb.Entry, data []byte) {
	c := l.coded
	now := c.now()
	if o := l.observer(); o != nil {
		o.Proposed(e.GetIndex(), len(data), now)
	}
	worth := e.GetType() == pb.EntryNormal && len(data) >= c.opt.Threshold && l.mayCode() && (c.opt.Veto == nil || !c.opt.Veto(data))
	if worth {
		plan, whole := l.assign(e.GetIndex(), len(data), now)
		if !whole {
			l.sealCoded(e, data, plan, now)
			return
		}
		c.record(CodingEvent{Kind: CodingWhole, Index: e.GetIndex(), Bytes: len(data)})
	}
	if c.isReserved(e.GetType(), data) {
		h := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(data), PayloadCRC: ecraft.Checksum(data), Encoder: l.id}
		word := ecraft.NewCodeword(h, data)
		e.Data = ecraft.Seal(nil, h, l.id, c.opt.ClearPrefix, word, nil)
		word.Free()
		c.spans.add(e.GetIndex())
		return
	}
	e.Data = bytes.Clone(data)
}

// assign asks the policy for the units of each follower. It reports whether
// that means full copies.
func (l *leader) assign(index uint64, size int, now time.Duration) (plan ecraft.Plan, whole bool) {
	enc := l.enc
	for i := range enc.round.Followers {
		f := &enc.round.Followers[i]
		f.Healthy = l.coded.healthy(f.ID)
		f.Lags = l.members.Progress[f.ID].Next <= l.log.committed
	}
	enc.round.Index, enc.round.Size, enc.round.Now = index, size, now
	plan = l.coded.opt.Policy.Assign(&enc.round, enc.units)
	d := enc.round.Layout.D
	for i, u := range enc.units {
		enc.units[i] = min(max(u, 0), d)
	}
	partial := func(u int) bool { return u != d && (u != 0 || size >= leastLevelOne) }
	return plan, !slices.ContainsFunc(enc.units, partial)
}

// leastLevelOne is the size of a payload from which an envelope is worth while
// although those that get anything get everything: the others need no copy when
// they are back. Below, it only adds its header.
const leastLevelOne = 8 << 10

// sealCoded wraps the payload as units by the assignment in l.enc.units.
func (l *leader) sealCoded(e *pb.Entry, data []byte, plan ecraft.Plan, now time.Duration) {
	c, enc := l.coded, l.enc
	// The same shares in as few units as can be are cheaper to compute.
	layout := enc.round.Layout.Reduce(enc.units)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(data),
		Layout: layout, Encoder: l.id, Members: enc.members, Units: make([]uint8, len(enc.units)),
	}
	for i, u := range enc.units {
		h.Units[i] = uint8(u)
	}
	word := ecraft.NewCodeword(h, data)
	h.PayloadCRC = word.Sum()
	e.Data = ecraft.Seal(nil, h, l.id, c.opt.ClearPrefix, word, nil)
	// The codeword shares the memory of the entry, where the payload is last.
	word.Moved(e.Data[len(e.Data)-len(data):])
	if !c.opt.LateSeal {
		word.Prepare(enc.units)
	}
	rec := &record{id: idOf(e), hdr: h, complete: true, whole: true, plan: plan, born: now, bornTick: c.ticks}
	if after := ecraft.HedgeAfter(plan); after > 0 && now > 0 {
		rec.hedgeAt = now + after
		if plan.Silence > 0 {
			after = min(after, plan.Silence)
		}
		if enc.hedgeNext == 0 || now+after < enc.hedgeNext {
			enc.hedgeNext = now + after
		}
	}
	c.ledger.add(rec)
	c.ledger.keep(rec, word)
	c.ledger.trim(c.opt.Memory)
	c.spans.add(e.GetIndex())
	c.record(CodingEvent{Kind: CodingEncoded, Index: e.GetIndex(), Level: plan.Level, Bytes: len(data)})
	enc.credit = min(enc.credit+int(float64(len(data))*ecraft.HedgeBudget), maxCredit)
}

// maxCredit bounds what a quiet time may save up for hedges, in bytes.
const maxCredit = 4 << 20
