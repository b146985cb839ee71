// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import "slices"

// spans says where entries of a log are not plain: envelopes, also carriers and
// wrapped payloads. Neighbours share a span, so that a log of many coded entries
// needs few.
type spans struct {
	// before is the index up to which nothing is known: entries up to it are
	// compacted, or were not looked at, and any of them may be coded.
	before uint64
	// runs are the coded entries behind, ascending, with plain entries between. With
	// maxRuns of them, the first run may have plain entries, too.
	runs []span
}

// span is the indexes in [first, last].
type span struct{ first, last uint64 }

// maxRuns bounds the memory of spans.
const maxRuns = 64

// add notes a coded entry behind all that are known.
func (s *spans) add(index uint64) {
	if n := len(s.runs); n > 0 && s.runs[n-1].last+1 >= index {
		s.runs[n-1].last = index
		return
	}
	s.insert(len(s.runs), index)
}

// insert puts a span of one entry into its place.
func (s *spans) insert(i int, index uint64) {
	s.runs = slices.Insert(s.runs, i, span{first: index, last: index})
	if len(s.runs) > maxRuns {
		s.runs[1].first = s.runs[0].first
		s.runs = slices.Delete(s.runs, 0, 1)
	}
}

// cut forgets entries from index on: others take their place.
func (s *spans) cut(index uint64) {
	n := len(s.runs)
	for n > 0 && s.runs[n-1].first >= index {
		n--
	}
	if s.runs = s.runs[:n]; n > 0 {
		s.runs[n-1].last = min(s.runs[n-1].last, index-1)
	}
	s.before = min(s.before, index-1)
}

// last returns an index at or above that of each coded entry.
func (s *spans) last() uint64 {
	if n := len(s.runs); n > 0 {
		return max(s.before, s.runs[n-1].last)
	}
	return s.before
}

// lastUpTo returns the last entry up to index that is known to be coded; 0 if none is.
func (s *spans) lastUpTo(index uint64) uint64 {
	for i := len(s.runs) - 1; i >= 0; i-- {
		if r := s.runs[i]; r.first <= index {
			return min(r.last, index)
		}
	}
	return 0
}

// lookedAt notes that all entries behind index were looked at, and found, the last
// coded entry among the entries unknown before; 0 without such an entry.
func (s *spans) lookedAt(index, found uint64) {
	s.before = min(s.before, index)
	i := 0
	for i < len(s.runs) && s.runs[i].last < found {
		i++
	}
	if found > index && (i == len(s.runs) || found < s.runs[i].first) {
		s.insert(i, found)
	}
}
