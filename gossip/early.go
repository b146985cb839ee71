// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "github.com/weftraft/weft/ecraft"

// earlyShare is the part of the budget that early units may have: one in so
// many bytes.
const earlyShare = 8

// earlyBytes is the cost of an early strip beside its units.
const earlyBytes = 128

// earlyUnits are units of entries that are not in the log yet: their sender got
// the entry from the leader before this node did. The entry may also never come. The
// units cannot be checked before the header is there. If there is no room for more,
// later units are dropped, because units that pushes do not bring are asked for.
type earlyUnits struct {
	bytes int
	byID  map[ecraft.ID][]earlyStrip
	swept uint64 // applied index when stale ones were last looked for
}

type earlyStrip struct {
	origin
	strip ecraft.Strip
}

func (e earlyStrip) bytes() int { return earlyBytes + e.strip.EncodedLen() }

// addEarly keeps units aside, if there is room.
func (s *Store) addEarly(id ecraft.ID, o origin, u ecraft.Strip) {
	e, strip := &s.early, earlyStrip{o, u}
	if n := strip.bytes(); e.bytes+n > s.budget/earlyShare || s.bytes+n > s.budget {
		return
	}
	if e.byID == nil {
		e.byID = map[ecraft.ID][]earlyStrip{}
	}
	e.byID[id] = append(e.byID[id], strip)
	s.growEarly(strip.bytes())
	s.counts.early++
}

func (s *Store) growEarly(by int) {
	s.early.bytes += by
	s.bytes += by
}

// takeEarly removes and returns the units of an entry that came early.
func (s *Store) takeEarly(id ecraft.ID) []earlyStrip {
	list := s.early.byID[id]
	for _, e := range list {
		s.growEarly(-e.bytes())
	}
	delete(s.early.byID, id)
	return list
}

// forgetEarly drops the early units of applied entries, so rarely that the work is
// bounded by the number of entries applied.
func (s *Store) forgetEarly() {
	e := &s.early
	if len(e.byID) == 0 || s.applied-e.swept < uint64(len(e.byID)) {
		return
	}
	e.swept = s.applied
	for id := range e.byID {
		if id.Index <= s.applied {
			s.takeEarly(id)
		}
	}
}
