// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"bytes"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// sealer makes a leader's own form of entries.
type sealer struct {
	*accounts
	slots    *slots
	unplaced *unplaced
	hedger   *hedger
}

// mayCode reports whether every member reads coded entries, and none asked for plain
// ones.
func (s *sealer) mayCode() bool {
	if s.plain || s.slots.round.Layout.D == 0 || !s.everyoneReads() {
		return false
	}
	for _, id := range s.slots.members {
		if s.of[id].plain {
			return false
		}
	}
	// Entries appended behind a change that brings voters also need these voters to
	// commit. To a new voter that cannot read envelopes the leader could send neither the
	// entries nor a snapshot that covers the entries, and the group would hang.
	return len(s.raft.Electorate().Brings()) == 0
}

// everyoneReads reports whether every member can read envelopes.
func (s *sealer) everyoneReads() bool {
	for _, id := range s.slots.members {
		if a := s.of[id]; a == nil || !a.capable {
			return false
		}
	}
	return true
}

// isReserved reports whether a payload in a log could be taken for an envelope: by this
// node, or by a node with another clear prefix or none.
func (n *node) isReserved(typ pb.EntryType, data []byte) bool {
	if typ != pb.EntryNormal {
		return false
	}
	_, foreign := ecraft.Detect(data)
	return foreign || ecraft.IsEnvelope(data, n.cfg.ClearPrefix)
}

// seal makes of an appended entry, in place, the form that this node stores: plain, or
// with its payload in an envelope. data is the payload; the entry does not share its
// memory.
func (s *sealer) seal(e *pb.Entry, data []byte) {
	now := s.now()
	if o := s.observer(); o != nil {
		o.Proposed(e.GetIndex(), len(data), now)
	}
	if s.worth(e.GetType(), len(data)) && (s.cfg.Veto == nil || !s.cfg.Veto(data)) {
		plan, whole := s.assign(e.GetIndex(), len(data), now)
		if !whole {
			s.sealCoded(e, data, plan, now)
			return
		}
		s.emit(Event{Kind: Whole, Index: e.GetIndex(), Bytes: len(data)})
	}
	if s.isReserved(e.GetType(), data) {
		h := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(data), PayloadCRC: ecraft.Checksum(data), Encoder: s.id}
		word := ecraft.NewCodeword(h, data)
		e.Data = ecraft.Seal(nil, h, s.id, s.cfg.ClearPrefix, word, nil)
		word.Free()
		s.unplaced.made = append(s.unplaced.made, made{ent: e, stands: func(id ecraft.ID) { s.unplaced.ledger.spans.add(id.Index) }})
		return
	}
	e.Data = bytes.Clone(data)
}

// worth reports whether an entry of a size is to be coded. A payload may be longer than an envelope says.
func (s *sealer) worth(typ pb.EntryType, size int) bool {
	return typ == pb.EntryNormal && size >= s.cfg.Threshold && size <= ecraft.MaxPayload && s.mayCode()
}

// assign asks the policy for the units of each follower, and reports whether the answer
// means full copies.
func (s *sealer) assign(index uint64, size int, now time.Duration) (plan ecraft.Plan, whole bool) {
	for i := range s.slots.round.Followers {
		f := &s.slots.round.Followers[i]
		f.Healthy = s.healthy(f.ID)
		pr, _ := s.raft.Progress(f.ID)
		f.Lags = pr.Next <= s.log.Committed()
	}
	s.slots.round.Index, s.slots.round.Size, s.slots.round.Now = index, size, now
	d, units := s.slots.round.Layout.D, s.slots.units[:len(s.slots.round.Followers)]
	plan = s.cfg.Policy.Assign(&s.slots.round, units)
	for i, u := range units {
		units[i] = min(max(u, 0), d)
	}
	clear(s.slots.units[len(units):]) // after Reduce
	partial := func(u int) bool { return u != d && (u != 0 || size >= leastLevelOne) }
	whole = !slices.ContainsFunc(units, partial)
	return plan, whole && (!s.slots.readers() || plan.Plain || size < leastLevelOne)
}

// leastLevelOne is the size of a payload from which on an envelope is worth its header
// although all followers with units get all: the other followers need no copy when they
// are back, and learners get theirs from the followers.
const leastLevelOne = 8 << 10

// sealCoded wraps the payload as units by the assignment in the slots.
func (s *sealer) sealCoded(e *pb.Entry, data []byte, plan ecraft.Plan, now time.Duration) {
	// The same shares in as few units as can be are cheaper to compute.
	layout := s.slots.round.Layout.Reduce(s.slots.units)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(data),
		Layout: layout, Encoder: s.id, Members: s.slots.members, Units: make([]uint8, len(s.slots.units)),
	}
	for i, u := range s.slots.units {
		h.Units[i] = uint8(u)
	}
	word := ecraft.NewCodeword(h, data)
	h.PayloadCRC = word.Sum()
	e.Data = ecraft.Seal(nil, h, s.id, s.cfg.ClearPrefix, word, nil)
	// The codeword shares the memory of the entry, where the payload is last.
	word.Moved(e.Data[len(e.Data)-len(data):])
	if !s.cfg.LateSeal {
		word.Prepare(s.slots.units)
	}
	rec := &record{hdr: h, word: word, complete: true, whole: true, plan: plan, born: now, bornTick: s.ticks}
	s.hedger.sealed(rec)
	s.unplaced.made = append(s.unplaced.made, made{ent: e, rec: rec})
	s.emit(Event{Kind: Encoded, Index: e.GetIndex(), Level: plan.Level, Bytes: len(data)})
}
