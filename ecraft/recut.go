// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

// recut cuts a payload anew for an assignment of a single level that does not divide D, where
// holders would have up to a unit more than necessary. recut changes units, and returns the layout
// for the header of the entry; false if there is nothing to gain.
//
// The holders that could decode before can decode after: no level-1 holders could before, because
// the largest share is less than D/(level-1), and any level holders can before and after.
//
//	N=9, level 5: D 24, 5 or 4 units each, becomes D 20, 4 units each
func (l Layout) recut(units []int) (Layout, bool) {
	holders, most, sum := 0, 0, 0
	for _, n := range units {
		if n > 0 {
			holders++
			most, sum = max(most, n), sum+n
		}
	}
	if most == 0 || most == l.D {
		return l, false
	}
	level := (l.D + most - 1) / most
	fewer := holders*most - sum // number of holders with a unit less
	for _, n := range units {
		if n > 0 && n < most-1 {
			return l, false
		}
	}
	if l.D%level == 0 || holders < level || level*most-min(fewer, level) < l.D {
		return l, false
	}
	best, least := l, fraction{num: 1, den: 0}
	for d := level; d <= l.D && d*l.Slots <= MaxUnits; d += level {
		if o := overhead(d, level); o.less(least) {
			best.D, least = d, o
		}
	}
	if best.D == l.D {
		return l, false
	}
	for i, n := range units {
		if n > 0 {
			units[i] = best.D / level
		}
	}
	return best, true
}
