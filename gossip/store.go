// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

var (
	// ErrRefused is wrapped by the errors of units that a peer had no business
	// to send.
	ErrRefused = errors.New("gossip: refused")
	// ErrLied is wrapped by the errors of payloads that came out wrong although
	// the checksum of each unit was right.
	ErrLied = errors.New("gossip: wrong payload")
)

// Store holds units and payloads in memory, by entry, within a budget.
//
// An entry in it is wanted until its payload is there, and kept afterwards for
// the host and for peers that ask. When room is short, what goes first is
//
//  1. payloads of applied entries, oldest first;
//  2. units that came before their entry (early ones), of the peer that sent
//     most of them;
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
	counts  StoreCounts
	rejects map[uint64]uint64
}

// StoreCounts count what a Store did.
type StoreCounts struct {
	Units      uint64 // units taken in, from peers
	Duplicates uint64 // units that were there, or of no use any more
	Early      uint64 // strips that came before their entry
	EarlyLost  uint64 // of these, dropped for lack of room, or never wanted
	Decodes    uint64 // payloads decoded, the failed ones too
	Failed     uint64 // of these, with a wrong CRC
	Doubted    uint64 // entries of which units had to be tried peer by peer
	Evicted    uint64 // payloads of applied entries dropped for lack of room
	Forgotten  uint64 // other entries dropped for lack of room
	Rejected   uint64 // strips with wrong units, or of a wrong slot, of all peers
}

// record is what the store has of an entry.
type record struct {
	id      ecraft.ID
	h       *ecraft.Header // nil only with a payload
	payload []byte         // nil: not complete
	units   *ecraft.Assembly
	have    ecraft.Set     // units in the assembly
	first   []uint8        // per slot, the first unit that is not in it
	own     []ecraft.Strip // units from the log
	from    []uint64       // peers whose units are in the assembly
	doubt   *doubt         // not nil once a payload came out wrong
	bytes   int
	pins    int
}

// recordBytes is what an entry costs beside its units or payload.
const recordBytes = 320

// NewStore returns an empty store for the node self, with a budget in bytes.
func NewStore(self uint64, budget int) *Store {
	return &Store{self: self, budget: max(budget, 0), rejects: map[uint64]uint64{}}
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
		_, _ = s.addFrom(r, e.from, e.strip) // what is wrong with them is counted
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

// Add takes in units that a peer sent. It returns whether that made the payload
// complete. Units of an entry that is not expected yet are kept aside. A unit
// with a wrong checksum is dropped; the error, which names the peer, wraps
// ErrCorrupt of package ecraft then, or says why nothing was taken in.
func (s *Store) Add(id ecraft.ID, from uint64, u ecraft.Strip) (complete bool, err error) {
	if u.Count == 0 {
		return false, nil
	}
	r := s.lookup(id)
	switch {
	case r == nil && id.Index <= s.applied:
		s.counts.Duplicates += uint64(u.Count)
		return false, nil
	case r == nil:
		s.addEarly(id, from, u)
		return false, nil
	case r.payload != nil:
		s.counts.Duplicates += uint64(u.Count)
		return false, nil
	}
	complete, err = s.addFrom(r, from, u)
	s.trim()
	return complete && s.Known(id), err
}

// Put gives the store a payload that is known to be complete. h may be nil where
// an entry is not coded.
func (s *Store) Put(id ecraft.ID, h *ecraft.Header, payload []byte) {
	r := s.lookup(id)
	if r == nil {
		r = &record{id: id, h: h}
		s.insert(r)
	}
	if r.payload == nil {
		s.finish(r, payload)
		s.counts.EarlyLost += uint64(len(s.takeEarly(id)))
	}
	s.trim()
}

// Payload returns the payload of an entry, or nil if it is not complete here.
func (s *Store) Payload(id ecraft.ID) []byte {
	if r := s.lookup(id); r != nil {
		return r.payload
	}
	return nil
}

// Known reports whether the store has anything of an entry that was expected or
// put into it.
func (s *Store) Known(id ecraft.ID) bool { return s.lookup(id) != nil }

// Doubted reports whether a payload came out wrong, so that units of its entry are
// dropped and wanted anew.
func (s *Store) Doubted(id ecraft.ID) bool {
	r := s.lookup(id)
	return r != nil && r.doubt != nil
}

// Missing returns how many units of an entry are lacking to decode it, and the
// first unit of the own slot that is. An entry that is complete, or not known,
// lacks none.
func (s *Store) Missing(id ecraft.ID) (units, ownHeld int) {
	r := s.lookup(id)
	if r == nil || r.payload != nil {
		return 0, 0
	}
	return r.missing(), r.ownHeld(s.self)
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
			out = append(out, Lacking{ID: r.id, Header: r.h, Need: r.missing(), OwnHeld: r.ownHeld(s.self),
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

// Counts returns the counters.
func (s *Store) Counts() StoreCounts { return s.counts }

// Rejected returns how many strips of a peer had wrong units, or were of a wrong
// slot.
func (s *Store) Rejected(peer uint64) uint64 { return s.rejects[peer] }

func (s *Store) reject(peer uint64) {
	s.counts.Rejected++
	s.rejects[peer]++
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}
