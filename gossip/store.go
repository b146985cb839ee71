// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"errors"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

var (
	// ErrRefused is wrapped by the errors of units that a peer had no business
	// to send.
	ErrRefused = errors.New("gossip: refused")
	// ErrWrongPayload is wrapped by the errors of payloads that came out wrong
	// although the checksum of each unit was right.
	ErrWrongPayload = errors.New("gossip: wrong payload")
)

// Store holds units and payloads in memory, by entry, within a budget.
//
// An entry in it is wanted until its payload is there, and kept afterwards for
// the host and for peers that ask. When room is short, what goes first is
//
//  1. payloads of applied entries, oldest first;
//  2. units that came before their entry (early ones);
//  3. entries that are not applied, newest first. Forgot tells from where on to
//     Expect them again. So a host that Expects the oldest of them whenever it
//     has applied something always has its next entry here.
//
// The oldest entry that is not applied always has room, or a node could be unable
// to go on; so have entries that are pinned.
//
// A peer may send units of its own slot and of this node's slot, of which nobody
// else can have any. Otherwise one bad peer could pass for others.
//
// Invariants:
//
//   - Bytes is at most the budget, unless the oldest entry not applied and pinned
//     ones alone are more.
//   - A payload is handed out only if it has the CRC of its header.
//   - There is one entry per index, and entries are in ascending order.
//
// Memory that was handed out or taken in is never changed or used again.
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

// record is what the store has of an entry.
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

// recordBytes is what an entry costs beside its units or payload.
const recordBytes = 320

// NewStore returns an empty store for the node self, with a budget in bytes.
func NewStore(self uint64, budget int) *Store {
	return &Store{self: self, budget: max(budget, 0)}
}

// Expect says that an entry is in the log, and that its payload is wanted; own
// are the units of it that the log holds. It returns whether the payload is
// complete, and may be called again.
//
// The store may have no room for an entry: it is not Known then. Entries that
// are not coded are complete wherever they are stored, and not for the store.
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
			_ = s.addFrom(r, e.from, e.strip) // what is wrong with it is asked for
		}
	}
	s.trim()
	return s.Payload(id) != nil
}

// ExpectPinned is Expect and Pin in one: an entry that there would be no room
// for is taken in all the same. Unpin ends it.
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

// unitsBytes is what an entry costs beside its units while they are gathered.
func unitsBytes(h *ecraft.Header) int { return 24 * h.D * h.Slots }

// Add takes in units that a peer sent, or those of a rider in the log of this node. It returns whether that made the payload
// complete. Units of an entry that is not expected yet are kept aside. A unit
// with a wrong checksum is dropped, and the error wraps ErrCorrupt of package ecraft.
// With ErrWrongPayload all units of peers were dropped: they are to be asked for again.
// Errors name the peer.
func (s *Store) Add(id ecraft.ID, from uint64, u ecraft.Strip) (complete bool, err error) {
	if u.Count == 0 {
		return false, nil
	}
	r := s.lookup(id)
	switch {
	case r == nil && id.Index > s.applied:
		s.addEarly(id, from, u)
		return false, nil
	case r == nil || r.payload != nil:
		return false, nil
	}
	err = s.addFrom(r, from, u)
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

// Known reports whether the store has anything of an entry that was expected.
func (s *Store) Known(id ecraft.ID) bool { return s.lookup(id) != nil }

// Missing returns how many units of an entry are lacking to decode it, and the
// first unit of the own slot that is. An entry that is complete, or not known,
// lacks none.
func (s *Store) Missing(id ecraft.ID) (units, ownHeld int) {
	r := s.lookup(id)
	if r == nil || r.payload != nil {
		return 0, 0
	}
	return r.units.Missing(), r.ownHeld(s.self)
}

// Lacking appends to out the oldest entries that lack units, up to an index and
// so many at most, those that are pinned as urgent: what Puller.Plan is to work on. It shares memory with the
// store, so it is good until the next call.
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
// snapshot. What was wanted of them is wanted no more, unless it is pinned, and
// what is complete is pinned no more. An entry that is needed once more
// afterwards, to make units for a peer, should be ExpectPinned.
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

// Pin keeps an entry in the store until Unpin is called as many times, or until
// it is complete and applied. It reports whether the entry is Known.
func (s *Store) Pin(id ecraft.ID) bool {
	r := s.lookup(id)
	if r != nil {
		r.pins++
	}
	return r != nil
}

// Unpin ends what Pin began. What is still lacking of an entry that is applied is
// wanted no more then.
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

// Forgot returns the lowest index of the entries that were forgotten for lack of
// room since it was last called, if there are any: they are to be Expected again.
func (s *Store) Forgot() (from uint64, ok bool) {
	from, s.forgot = s.forgot, 0
	return max(from, s.applied+1), from != 0
}

// Bytes returns the memory in use, own units and early ones included.
func (s *Store) Bytes() int { return s.bytes }
