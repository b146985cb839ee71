// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "github.com/weftraft/weft/ecraft"

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

// begin puts in an entry of which nothing is held yet.
func (s *Store) begin(id ecraft.ID, h *ecraft.Header) *record {
	r := &record{id: id, h: h, units: ecraft.NewAssembly(h), first: make([]uint8, h.Slots)}
	s.insert(r)
	s.grow(r, recordBytes+unitsBytes(h))
	return r
}
