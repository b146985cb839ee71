// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// after returns the position of the first entry above an index.
func (s *Store) after(index uint64) int {
	at, _ := slices.BinarySearchFunc(s.entries, index, func(r *record, index uint64) int {
		if r.id.Index <= index {
			return -1
		}
		return 1
	})
	return at
}

// lookup returns the entry with an ID, or nil.
func (s *Store) lookup(id ecraft.ID) *record {
	if at := s.after(id.Index); at > 0 && s.entries[at-1].id == id {
		return s.entries[at-1]
	}
	return nil
}

// begin puts in an entry of which nothing is held yet.
func (s *Store) begin(id ecraft.ID, h *ecraft.Header) *record {
	r := &record{id: id, h: h, units: ecraft.NewAssembly(h), first: make([]uint8, h.Slots)}
	s.insert(r)
	s.grow(r, recordBytes+unitsBytes(h))
	return r
}

// insert puts in an entry that is not known. One of another term at its index
// has lost its place in the log.
func (s *Store) insert(r *record) {
	at := s.after(r.id.Index)
	if at > 0 && s.entries[at-1].id.Index == r.id.Index {
		at--
		s.remove(at)
	}
	s.entries = slices.Insert(s.entries, at, r)
}

func (s *Store) remove(at int) {
	r := s.entries[at]
	s.grow(r, -r.bytes)
	if at == 0 { // what is applied leaves at the front: nothing is to be moved
		s.entries[0] = nil
		s.entries = s.entries[1:]
		return
	}
	s.entries = slices.Delete(s.entries, at, at+1)
}

// grow changes the bytes of an entry.
func (s *Store) grow(r *record, by int) {
	r.bytes += by
	s.bytes += by
	if r.id.Index <= s.applied {
		s.cached += by
	}
}

// trim makes room, in the order that Store's comment gives.
func (s *Store) trim() {
	if s.bytes <= s.budget {
		return
	}
	oldest := s.after(s.applied)
	for i := 0; i < oldest && s.bytes > s.budget; {
		if s.entries[i].pins > 0 {
			i++
			continue
		}
		s.remove(i)
		oldest--
	}
	if s.bytes > s.budget {
		for id := range s.early.byID {
			s.takeEarly(id)
		}
	}
	for i := len(s.entries) - 1; i > oldest && s.bytes > s.budget; i-- {
		if r := s.entries[i]; r.pins == 0 {
			s.remove(i)
			if s.forgot == 0 || r.id.Index < s.forgot {
				s.forgot = r.id.Index
			}
		}
	}
}
