// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"math"
	"slices"
)

// bisections are enough to tell times apart that differ by a thousandth.
const bisections = 12

// uneven weighs the assignment that has all who are given anything answer at
// the same time: as water fills vessels of different heights. ok is false if
// there is none.
func (a *Adaptive) uneven(r *Round) (u candidate, ok bool) {
	c := &a.choice
	least, most := math.Inf(1), 0.0
	for _, p := range c.peers {
		if !p.gone && p.voter {
			least = min(least, p.ready)
			most = max(most, p.ready+p.cost*float64(r.Size+entryOverhead))
		}
	}
	if !c.pour(r, most) {
		return u, false
	}
	for range bisections {
		if mid := (least + most) / 2; c.pour(r, mid) {
			most = mid
		} else {
			least = mid
		}
	}
	c.pour(r, most)

	var queued, slowest float64
	for i, p := range c.peers {
		size := float64(c.units[i])*unitBytes(r) + entryOverhead
		u.tx += size * a.egress
		if c.units[i] == 0 {
			continue
		}
		u.need++
		u.time = max(u.time, p.ready+p.cost*size)
		queued += p.queue * p.cost
		if p.private {
			slowest = max(slowest, p.cost*size)
		}
	}
	u.tx = max(u.tx, slowest)
	u.time = max(u.time+a.jitter[u.need-1], 1e-6)
	u.later = a.later(r, u.tx, queued/float64(u.need))
	return u, true
}

// pour gives each voter the units that it would have answered for by t, caps
// what is of no use, and reports whether the rest can commit.
func (c *choice) pour(r *Round, t float64) bool {
	d, unit := r.Layout.D, unitBytes(r)
	c.order = c.order[:0]
	for i, p := range c.peers {
		c.units[i] = 0
		if p.gone || !p.voter {
			continue
		}
		n := math.Floor((t - p.ready - p.cost*entryOverhead) / (p.cost * unit))
		c.units[i] = int(max(0, min(n, float64(d))))
		c.order = append(c.order, i)
	}
	slices.SortStableFunc(c.order, func(i, j int) int { return c.units[j] - c.units[i] })
	half := r.Voters / 2
	if len(c.order) < half || c.units[c.order[half-1]] == 0 {
		return false // no majority
	}
	// The largest half-1 may be the ones that fail, so they do not count, and
	// need no more than the next.
	for _, i := range c.order[:half-1] {
		c.units[i] = c.units[c.order[half-1]]
	}
	sum := 0
	for _, i := range c.order[half-1:] {
		sum += c.units[i]
	}
	return sum >= d
}
