// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import "fmt"

// MaxUnits is the largest number of units of a codeword: one for each element of GF(2^8), the field
// of the code.
const MaxUnits = 256

// MaxD is the largest D. With more, the levels of large groups would be a little
// more exact, and all matrices much larger.
const MaxD = 32

// ID names an entry of the log: no two entries of a group have the same term and index. Term and
// index always travel together, and so cannot be swapped.
type ID struct{ Term, Index uint64 }

// String returns term/index.
func (id ID) String() string { return fmt.Sprintf("%d/%d", id.Term, id.Index) }

// Layout describes the cut of a payload: into D data units, and with parity units into a codeword
// of Slots*D units. Each slot owns D units that belong to no other slot: unit k of slot s is unit
// s+k*Slots of the codeword. So the data units, which cost nothing to make, come first in every
// slot.
//
// D is 0 where no payload can be coded: all members get the whole payload.
type Layout struct{ D, Slots int }

// NewLayout returns the layout for a group with this number of voters, the leader included, and
// this number of slots: a slot for each member, voter or learner, except the leader. D is the
// number of data units that comes closest to cutting a payload evenly at every level, and the least
// such number.
//
//	voters   3   5   7   9
//	D        2   6  12  24
//
// With one or two voters, and with so many slots that no payload can be cut in two, D is 0.
func NewLayout(voters, slots int) Layout {
	l := Layout{Slots: max(slots, 0)}
	if voters < 3 || slots < 1 {
		return l
	}
	best := fraction{num: 1, den: 0}
	for d := 2; d <= MaxD && d*slots <= MaxUnits; d++ {
		if o := overhead(d, Levels(voters)); o.less(best) {
			l.D, best = d, o
		}
	}
	return l
}

// UnitsAt returns the number of units of each holder at a level, such that any level holders have D
// units together. A level above D is like D.
func (l Layout) UnitsAt(level int) int {
	if level < 1 {
		return l.D
	}
	return (l.D + level - 1) / level
}

// Spread fills units, a count for each holder, with as few units in total as let any level holders
// decode. If D is no multiple of the level, some holders need one unit less than UnitsAt; turn
// chooses the holders, so that a caller that counts turn up with its entries spreads the saving
// evenly.
func (l Layout) Spread(level, turn int, units []int) {
	most := l.UnitsAt(level)
	for i := range units {
		units[i] = most
	}
	if level < 1 || len(units) == 0 {
		return
	}
	// The `level` holders with the least units may fall short by this much together.
	short := min(most*level-l.D, len(units))
	for i := range short {
		if at := (turn%len(units) + len(units) + i) % len(units); units[at] > 0 {
			units[at]--
		}
	}
}

// Reduce cuts a payload into fewer, larger units where the assignment allows: Reduce divides D and
// all of units by the largest factor that leaves each holder the same share of the payload, also at
// the lower levels, to which the entry may be raised later. Half as many units are computed twice
// as fast. Reduce changes units, and returns the layout for the header of the entry.
//
//	N=7, level 2: D 12, 6 units each, becomes D 2, 1 unit each
//
// If the level does not divide D, Reduce cuts the payload anew: see recut.
func (l Layout) Reduce(units []int) Layout {
	if r, ok := l.recut(units); ok {
		return r
	}
	factor, least := l.D, l.D
	for _, n := range units {
		factor = gcd(factor, n)
		if n > 0 {
			least = min(least, n)
		}
	}
	for ; factor > 1; factor-- {
		if l.keeps(factor, units, least) {
			break
		}
	}
	if factor > 1 {
		l.D /= factor
		for i := range units {
			units[i] /= factor
		}
	}
	return l
}

// keeps reports whether D and units can be divided by a factor while the shares stay the same at
// all levels up to the level of a holder of least units.
func (l Layout) keeps(factor int, units []int, least int) bool {
	if l.D%factor != 0 {
		return false
	}
	for _, n := range units {
		if n%factor != 0 {
			return false
		}
	}
	smaller := Layout{D: l.D / factor}
	for level := 1; level <= max(l.D/least, 2); level++ {
		if smaller.UnitsAt(level)*factor != l.UnitsAt(level) {
			return false
		}
	}
	return true
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Unit returns the unit of the codeword that is unit k of a slot.
func (l Layout) Unit(slot, k int) int { return slot + k*l.Slots }

// Levels returns the highest level of a group: at level l an entry commits with l + voters/2
// acknowledgements, the leader's among them, and at the highest level with the acknowledgements of
// all voters.
func Levels(voters int) int { return max(voters-voters/2, 1) }

// fraction is num/den; den 0 means infinity.
type fraction struct{ num, den int }

func (f fraction) less(g fraction) bool { return f.num*g.den < g.num*f.den }

// overhead returns the factor by which units of 1/d exceed the exact share 1/level, at the worst of
// the levels.
func overhead(d, levels int) fraction {
	worst := fraction{num: 1, den: 1}
	for level := 1; level <= levels; level++ {
		o := fraction{num: Layout{D: d}.UnitsAt(level) * level, den: d}
		if worst.less(o) {
			worst = o
		}
	}
	return worst
}
