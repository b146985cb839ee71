// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"bytes"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// mayCode reports whether every member reads coded entries, and none asked for plain
// ones.
func (l *leading) mayCode() bool {
	if l.plain || l.round.Layout.D == 0 || !l.everyoneReads() {
		return false
	}
	for _, id := range l.members {
		if l.accounts[id].plain {
			return false
		}
	}
	// Entries appended behind a change that brings voters also need these voters to
	// commit. To a new voter that cannot read envelopes the leader could send neither the
	// entries nor a snapshot that covers the entries, and the group would hang.
	return len(l.raft.Electorate().Brings()) == 0
}

// everyoneReads reports whether every member can read envelopes.
func (l *leading) everyoneReads() bool {
	for _, id := range l.members {
		if a := l.accounts[id]; a == nil || !a.capable {
			return false
		}
	}
	return true
}

// Seal turns entries about to be appended by a leader into the leader's own form. Until
// then the entries share the memory of the proposal.
func (c *Coder) Seal(ents []*pb.Entry) {
	for _, e := range ents {
		data := e.Data
		e.Data = nil
		c.leads.seal(e, data)
	}
}

// MayPropose returns why a leader must not append an entry as it was proposed.
func (c *Coder) MayPropose(e *pb.Entry) error {
	if c.isReserved(e.GetType(), e.GetData()) && !c.leads.everyoneReads() {
		return ErrReserved
	}
	return nil
}

// isReserved reports whether a payload in a log could be taken for an envelope: by this
// node, or by a node with another clear prefix or none.
func (c *Coder) isReserved(typ pb.EntryType, data []byte) bool {
	if typ != pb.EntryNormal {
		return false
	}
	_, foreign := ecraft.Detect(data)
	return foreign || ecraft.IsEnvelope(data, c.cfg.ClearPrefix)
}

// ErrReserved refuses a payload that a member without coding could not tell apart from
// an envelope.
var ErrReserved = errors.New("the payload begins with the mark of coded entries, and not every member can read those")

// seal makes of an appended entry, in place, the form that this node stores: plain, or
// with its payload in an envelope. data is the payload; the entry does not share its
// memory.
func (l *leading) seal(e *pb.Entry, data []byte) {
	c := l.Coder
	now := c.now()
	if o := l.observer(); o != nil {
		o.Proposed(e.GetIndex(), len(data), now)
	}
	worth := e.GetType() == pb.EntryNormal && len(data) >= c.cfg.Threshold && l.mayCode() && (c.cfg.Veto == nil || !c.cfg.Veto(data))
	if worth {
		plan, whole := l.assign(e.GetIndex(), len(data), now)
		if !whole {
			l.sealCoded(e, data, plan, now)
			return
		}
		c.emit(Event{Kind: Whole, Index: e.GetIndex(), Bytes: len(data)})
	}
	if c.isReserved(e.GetType(), data) {
		h := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(data), PayloadCRC: ecraft.Checksum(data), Encoder: l.id}
		word := ecraft.NewCodeword(h, data)
		e.Data = ecraft.Seal(nil, h, l.id, c.cfg.ClearPrefix, word, nil)
		word.Free()
		l.made = append(l.made, made{ent: e, stands: func(id ecraft.ID) { l.spans.add(id.Index) }})
		return
	}
	e.Data = bytes.Clone(data)
}

// assign asks the policy for the units of each follower, and reports whether the answer
// means full copies.
func (l *leading) assign(index uint64, size int, now time.Duration) (plan ecraft.Plan, whole bool) {
	for i := range l.round.Followers {
		f := &l.round.Followers[i]
		f.Healthy = l.healthy(f.ID)
		pr, _ := l.raft.Progress(f.ID)
		f.Lags = pr.Next <= l.log.Committed()
	}
	l.round.Index, l.round.Size, l.round.Now = index, size, now
	plan = l.cfg.Policy.Assign(&l.round, l.units)
	d := l.round.Layout.D
	for i, u := range l.units {
		l.units[i] = min(max(u, 0), d)
	}
	partial := func(u int) bool { return u != d && (u != 0 || size >= leastLevelOne) }
	return plan, !slices.ContainsFunc(l.units, partial)
}

// leastLevelOne is the size of a payload from which on an envelope is worth its header
// although all followers with units get all: the other followers need no copy when they
// are back.
const leastLevelOne = 8 << 10

// sealCoded wraps the payload as units by the assignment in l.units.
func (l *leading) sealCoded(e *pb.Entry, data []byte, plan ecraft.Plan, now time.Duration) {
	c := l.Coder
	// The same shares in as few units as can be are cheaper to compute.
	layout := l.round.Layout.Reduce(l.units)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(data),
		Layout: layout, Encoder: l.id, Members: l.members, Units: make([]uint8, len(l.units)),
	}
	for i, u := range l.units {
		h.Units[i] = uint8(u)
	}
	word := ecraft.NewCodeword(h, data)
	h.PayloadCRC = word.Sum()
	e.Data = ecraft.Seal(nil, h, l.id, c.cfg.ClearPrefix, word, nil)
	// The codeword shares the memory of the entry, where the payload is last.
	word.Moved(e.Data[len(e.Data)-len(data):])
	if !c.cfg.LateSeal {
		word.Prepare(l.units)
	}
	rec := &record{hdr: h, word: word, complete: true, whole: true, plan: plan, born: now, bornTick: c.ticks}
	if after := ecraft.HedgeAfter(plan); after > 0 && now > 0 {
		rec.hedgeAt = now + after
		if plan.Silence > 0 {
			after = min(after, plan.Silence)
		}
		if l.hedgeNext == 0 || now+after < l.hedgeNext {
			l.hedgeNext = now + after
		}
	}
	l.made = append(l.made, made{ent: e, rec: rec})
	c.emit(Event{Kind: Encoded, Index: e.GetIndex(), Level: plan.Level, Bytes: len(data)})
	l.credit = min(l.credit+int(float64(len(data))*ecraft.HedgeBudget), maxCredit)
}

// maxCredit bounds what a quiet time may save up for hedges, in bytes.
const maxCredit = 4 << 20
