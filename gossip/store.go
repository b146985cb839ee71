// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"errors"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

var (
	// ErrRefused is wrapped by the errors of units of a slot that a peer must not send.
	ErrRefused = errors.New("gossip: refused")
	// ErrWrongPayload is wrapped by the errors of payloads with a wrong checksum
	// although the checksum of each unit was right.
	ErrWrongPayload = errors.New("gossip: wrong payload")
)

// Store holds units and payloads in memory, by entry, within a budget.
//
// An entry in the store is wanted until its payload is there, and kept afterwards for
// the host and for peers that ask. When room is short, entries and units go in this
// order:
//
//  1. payloads of applied entries, oldest first;
//  2. units that came before their entry (early ones);
//  3. entries that are not applied, newest first. Forgot tells from where on to Expect
//     entries again. So a host that Expects the oldest of these after each apply always has
//     its next entry here.
//
// The oldest entry that is not applied always has room, or a node could be unable
// to go on; so have entries that are pinned.
//
// A peer may send units of its own slot and of this node's slot. Otherwise one bad peer
// could pass for others. Readers pass on to each other the units of slots that have some,
// and voters to the members of their zone, which no other way of units may do: see Pass and Collect.
//
// Invariants:
//
//   - Bytes is at most the budget, unless the oldest entry not applied and pinned
//     ones alone are more.
//   - A payload is handed out only if it has the CRC of its header.
//   - There is one entry per index, and entries are in ascending order.
//
// Memory that was handed out or taken in is never changed or reused.
type Store struct {
	self    uint64
	budget  int
	bytes   int
	cached  int       // bytes of the entries at or below applied
	entries []*record // ascending index
	applied uint64
	forgot  uint64 // lowest index that was forgotten for lack of room, or 0
	early   earlyUnits
	counts  struct{ early, wrong int } // for tests: early units, wrong payloads
}

// record is an entry in the store.
type record struct {
	id      ecraft.ID
	h       *ecraft.Header
	payload []byte // nil: not complete
	units   *ecraft.Assembly
	first   []uint8        // per slot, the first unit that is not in the assembly
	own     []ecraft.Strip // units from the log
	from    []uint64       // peers whose units are in the assembly
	bytes   int
	pins    int
}

// recordBytes is the cost of an entry beside its units or payload.
const recordBytes = 320

// NewStore returns an empty store for the node self, with a budget in bytes.
func NewStore(self uint64, budget int) *Store {
	return &Store{self: self, budget: max(budget, 0)}
}

// Expect says that an entry is in the log, and that its payload is wanted; own are the
// entry's units in the log. The result says whether the payload is complete. A call may
// be repeated.
//
// If the store has no room for an entry, the entry is not Known afterwards. Entries
// that are not coded are complete wherever they are stored, and not for the store.
func (s *Store) Expect(id ecraft.ID, h *ecraft.Header, own ...ecraft.Strip) (complete bool) {
	if h.Kind != ecraft.Coded {
		return false
	}
	r := s.lookup(id)
	if r == nil {
		r = s.begin(id, h)
	}
	for _, strip := range own {
		if r.payload == nil {
			s.addOwn(r, strip)
		}
	}
	for _, e := range s.takeEarly(id) {
		if r.payload == nil {
			_ = s.addFrom(r, e.origin, e.strip) // instead of wrong units others are asked for
		}
	}
	s.trim()
	return s.Payload(id) != nil
}

// ExpectPinned is Expect and Pin in one, with room for the entry in any case. Unpin
// ends the pin.
func (s *Store) ExpectPinned(id ecraft.ID, h *ecraft.Header, own ...ecraft.Strip) (complete bool) {
	if h.Kind != ecraft.Coded {
		return false
	}
	r := s.lookup(id)
	if r == nil {
		r = s.begin(id, h)
	}
	r.pins++
	return s.Expect(id, h, own...)
}

// unitsBytes is the cost of an entry beside its units while these are gathered.
func unitsBytes(h *ecraft.Header) int { return 24 * h.D * h.Slots }

// Add takes in units from a peer, or of a rider in the log of this node, and returns
// whether the payload is complete now. Units of an entry that is not expected yet are
// kept aside. A unit with a wrong checksum is dropped, and the error wraps ErrCorrupt
// of package ecraft. With ErrWrongPayload all units of peers were dropped: they are to
// be asked for again. Errors name the peer.
func (s *Store) Add(id ecraft.ID, from uint64, u ecraft.Strip) (complete bool, err error) {
	return s.add(id, origin{from: from}, u)
}

// Pass is Add for units that a reader has passed on to this node, a reader as well: units
// that the header assigns to another slot, where neither of the two was assigned any.
func (s *Store) Pass(id ecraft.ID, from uint64, u ecraft.Strip) (complete bool, err error) {
	return s.add(id, origin{from, passed}, u)
}

// Collect is Add for units that a voter has passed on in its zone: units that the header assigns to any slot.
func (s *Store) Collect(id ecraft.ID, from uint64, u ecraft.Strip) (complete bool, err error) {
	return s.add(id, origin{from, collected}, u)
}

func (s *Store) add(id ecraft.ID, o origin, u ecraft.Strip) (complete bool, err error) {
	if u.Count == 0 {
		return false, nil
	}
	r := s.lookup(id)
	switch {
	case r == nil && id.Index > s.applied:
		s.addEarly(id, o, u)
		return false, nil
	case r == nil || r.payload != nil:
		return false, nil
	}
	err = s.addFrom(r, o, u)
	s.trim()
	return s.Payload(id) != nil, err
}

// Payload returns the payload of an entry, or nil if it is not complete here.
func (s *Store) Payload(id ecraft.ID) []byte {
	if r := s.lookup(id); r != nil {
		return r.payload
	}
	return nil
}

// Known reports whether the store has an entry that was expected.
func (s *Store) Known(id ecraft.ID) bool { return s.lookup(id) != nil }

// Missing returns how many units are lacking to decode an entry, and the first unit of
// the own slot that is lacking. An entry that is complete, or not known, lacks none.
func (s *Store) Missing(id ecraft.ID) (units, ownHeld int) {
	r := s.lookup(id)
	if r == nil || r.payload != nil {
		return 0, 0
	}
	return r.units.Missing(), r.ownHeld(s.self)
}

// Lacking appends to out the oldest entries that lack units, for Puller.Plan: up to an
// index and a number of entries, pinned entries as urgent. The result shares memory
// with the store and is good until the next call.
func (s *Store) Lacking(upTo uint64, most int, out []Lacking) []Lacking {
	first := len(out)
	for _, r := range s.entries {
		if r.id.Index > upTo || len(out)-first >= most {
			break
		}
		if r.payload == nil {
			out = append(out, Lacking{ID: r.id, Header: r.h, Need: r.units.Missing(), OwnHeld: r.ownHeld(s.self),
				Urgent: r.pins > 0, First: r.first})
		}
	}
	return out
}

// Cut forgets the entries from an index on: the log was truncated there.
func (s *Store) Cut(from uint64) {
	for n := len(s.entries); n > 0 && s.entries[n-1].id.Index >= from; n-- {
		s.remove(n - 1)
	}
	if s.forgot >= from {
		s.forgot = 0
	}
}

// Applied says that the entries up to an index have been applied, here or in a
// snapshot. Entries among these that lack units are forgotten, unless they are pinned,
// and pins of complete ones end. An applied entry that is needed once more, to make
// units for a peer, should be ExpectPinned.
func (s *Store) Applied(index uint64) {
	if index <= s.applied {
		return
	}
	keep, end := s.after(s.applied), s.after(index)
	for _, r := range s.entries[keep:end] {
		if r.payload == nil && r.pins == 0 {
			s.grow(r, -r.bytes)
			continue
		}
		if r.payload != nil {
			r.pins = 0
		}
		s.cached += r.bytes
		s.entries[keep] = r
		keep++
	}
	s.entries = slices.Delete(s.entries, keep, end)
	s.applied = index
	s.forgetEarly()
	s.trim()
}

// Pin keeps an entry in the store until Unpin is called as many times, or until the
// entry is complete and applied. The result says whether the entry is Known.
func (s *Store) Pin(id ecraft.ID) bool {
	r := s.lookup(id)
	if r != nil {
		r.pins++
	}
	return r != nil
}

// Unpin ends a Pin. An applied entry that still lacks units is forgotten then.
func (s *Store) Unpin(id ecraft.ID) {
	r := s.lookup(id)
	if r == nil || r.pins == 0 {
		return
	}
	if r.pins--; r.pins == 0 && r.payload == nil && id.Index <= s.applied {
		s.remove(s.after(id.Index) - 1)
	}
	s.trim()
}

// Forgot returns the lowest index of the entries forgotten for lack of room since the
// last call, if there are any: they are to be Expected again.
func (s *Store) Forgot() (from uint64, ok bool) {
	from, s.forgot = s.forgot, 0
	return max(from, s.applied+1), from != 0
}

// Bytes returns the memory in use, own units and early ones included.
func (s *Store) Bytes() int { return s.bytes }
