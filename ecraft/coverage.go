// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"iter"
	"math/bits"
	"slices"
)

// Covered reports whether any need of the members hold d distinct units between them,
// where held is the number of units of its own strip for each member. Strips are
// disjoint, so the members with the least holdings decide.
//
// An entry with d = 0 needs no units. Otherwise need must be within 1 and the
// number of members, or nothing is covered.
func Covered(d, need int, held []int) bool {
	if d <= 0 {
		return true
	}
	if need < 1 || need > len(held) {
		return false
	}
	var buf [32]int // enough for usual groups; larger groups allocate
	sorted := append(buf[:0], held...)
	slices.Sort(sorted)
	sum := 0
	for _, h := range sorted[:need] {
		sum += h
	}
	return sum >= d
}

// Set is a set of units of a codeword.
type Set [MaxUnits / 64]uint64

// Add puts a unit into the set.
func (s *Set) Add(unit int) { s[unit/64] |= 1 << (unit % 64) }

// Has reports whether a unit is in the set.
func (s *Set) Has(unit int) bool { return s[unit/64]&(1<<(unit%64)) != 0 }

// Len returns the number of units.
func (s *Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// all yields the units in ascending order.
func (s *Set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Union returns the units of both sets.
func (s Set) Union(t Set) Set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// Strip returns the first count units of a slot.
func (l Layout) Strip(slot, count int) Set {
	var s Set
	for k := range count {
		s.Add(l.Unit(slot, k))
	}
	return s
}

// CoveredSets is Covered for members whose units overlap: it reports whether any need
// of the members hold d distinct units between them. The cost grows with the number of
// choices of members, so CoveredSets is for groups of ordinary size.
func CoveredSets(d, need int, held []Set) bool {
	if d <= 0 {
		return true
	}
	if need < 1 || need > len(held) {
		return false
	}
	return coveredBy(d, need, Set{}, held)
}

// coveredBy reports whether have, with any need of the others, has d units.
func coveredBy(d, need int, have Set, others []Set) bool {
	if have.Len() >= d {
		return true // the remaining members do not matter
	}
	if need == 0 {
		return false
	}
	for i := 0; i+need <= len(others); i++ {
		if !coveredBy(d, need-1, have.Union(others[i]), others[i+1:]) {
			return false
		}
	}
	return true
}
