// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import "slices"

// spans is the log of a group during assembly from the segments: runs of consecutive
// entries, in order, with gaps. Gaps are normal on the way, because a purge may have
// moved the oldest entries behind younger ones. At the end there is one run, or none.
type spans []span

type span struct {
	first uint64
	slots []slot
}

func (s *span) end() uint64 { return s.first + uint64(len(s.slots)) }

// cutFrom drops the entries from index on.
func (sp *spans) cutFrom(index uint64) {
	n := len(*sp)
	for n > 0 && (*sp)[n-1].first >= index {
		n--
	}
	if *sp = (*sp)[:n]; n > 0 && (*sp)[n-1].end() > index {
		s := &(*sp)[n-1]
		s.slots = s.slots[:index-s.first] // what is behind belongs to nobody: it may be written over
	}
}

// cutTo drops the entries up to index.
func (sp *spans) cutTo(index uint64) { sp.cut(0, index+1) }

// cut drops the entries in [lo, hi).
func (sp *spans) cut(lo, hi uint64) {
	var out spans
	for _, s := range *sp {
		if s.end() <= lo || s.first >= hi {
			out = append(out, s)
			continue
		}
		if s.first < lo {
			// Clipped, because an append here must not overwrite the other part.
			out = append(out, span{first: s.first, slots: slices.Clip(s.slots[:lo-s.first])})
		}
		if s.end() > hi {
			out = append(out, span{first: hi, slots: s.slots[hi-s.first:]})
		}
	}
	*sp = out
}

// put replaces a run, and copies the slots.
func (sp *spans) put(first uint64, slots []slot) {
	end := first + uint64(len(slots))
	if n := len(*sp); n == 0 || (*sp)[n-1].end() == first {
		// By far the most frequent case: the log grows at its end.
		if n == 0 {
			*sp = spans{{first: first}}
			n = 1
		}
		(*sp)[n-1].slots = append((*sp)[n-1].slots, slots...)
		return
	}
	for _, s := range *sp {
		if s.first <= first && end <= s.end() {
			copy(s.slots[first-s.first:], slots) // entries that were moved, piece by piece: the log may be long
			return
		}
	}
	sp.cut(first, end)
	at, _ := slices.BinarySearchFunc(*sp, first, func(s span, first uint64) int {
		if s.first < first {
			return -1
		}
		return 1
	})
	*sp = slices.Insert(*sp, at, span{first: first, slots: slices.Clone(slots)})
	sp.join()
}

// join makes one run of neighbours.
func (sp *spans) join() {
	var out spans
	for _, s := range *sp {
		if n := len(out); n > 0 && out[n-1].end() == s.first {
			out[n-1].slots = append(out[n-1].slots, s.slots...)
			continue
		}
		out = append(out, s)
	}
	*sp = out
}

// end returns the index behind the last entry; 0 if there is none.
func (sp spans) end() uint64 {
	if len(sp) == 0 {
		return 0
	}
	return sp[len(sp)-1].end()
}
