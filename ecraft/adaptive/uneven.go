// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// bisections is enough steps to tell apart times that differ by a thousandth.
const bisections = 12

// uneven computes the assignment in which all followers with units answer at the same time, as
// water fills vessels of different heights to one level. ok is false without a possible assignment.
func (a *Policy) uneven(r *ecraft.Round) (u candidate, ok bool) {
	c := &a.choice
	// The time of the interface depends on the number of receivers and their shares.
	sharers := float64(len(c.byCost))
	for range 2 {
		if !c.fill(r, sharers) {
			return u, false
		}
		sum := 0
		for _, n := range c.units {
			sum += n
		}
		u.all = float64(sum)*unitBytes(r) + float64(len(c.peers))*entryOverhead
		sharers = float64(sum) / float64(slices.Max(c.units))
	}

	var queued, slowest float64
	for i := range c.peers {
		p := &c.peers[i]
		size := float64(c.units[i])*unitBytes(r) + entryOverhead
		u.tx += size * c.egress
		if c.units[i] == 0 {
			continue
		}
		u.need++
		u.time = max(u.time, c.answers(p, size, u.all))
		queued += c.free(p)
		slowest = max(slowest, p.alone*size)
	}
	u.tx = max(u.tx, slowest)
	u.time = max(u.time+a.wait(u.need, u.need), 1e-6)
	u.queued = queued / float64(u.need)
	a.later(r, &u)
	return u, true
}

// fill finds the least time by which enough units for a commit can be answered, if sharers
// receivers share the interface, and the units. ok is false without a possible assignment.
func (c *choice) fill(r *ecraft.Round, sharers float64) (ok bool) {
	least, most := math.Inf(1), 0.0
	for _, i := range c.byCost {
		p := &c.peers[i]
		least = min(least, p.trip+c.free(p))
		most = max(most, p.trip+c.free(p)+max(p.alone, sharers*c.egress)*float64(r.Size+entryOverhead))
	}
	if !c.pour(r, most, sharers) {
		return false
	}
	for range bisections {
		if mid := (least + most) / 2; c.pour(r, mid, sharers) {
			most = mid
		} else {
			least = mid
		}
	}
	return c.pour(r, most, sharers)
}

// pour gives each follower the units that the follower would have answered by t, caps units that are of
// no use, and reports whether the rest can commit.
func (c *choice) pour(r *ecraft.Round, t, sharers float64) bool {
	d, unit := r.Layout.D, unitBytes(r)
	c.order = c.order[:0]
	for i := range c.units {
		c.units[i] = 0
	}
	for _, i := range c.byCost {
		p := &c.peers[i]
		cost := max(p.alone, sharers*c.egress) // seconds a byte
		n := math.Floor((t - p.trip - c.free(p) - cost*entryOverhead) / (cost * unit))
		c.units[i] = int(max(0, min(n, float64(d))))
		c.order = append(c.order, i)
	}
	slices.SortStableFunc(c.order, func(i, j int) int { return c.units[j] - c.units[i] })
	half := r.Voters / 2
	if len(c.order) < half || c.units[c.order[half-1]] == 0 {
		return false // no majority
	}
	// The half-1 followers with the most units may be the followers that fail. So their units do
	// not count, and these followers need no more units than the next.
	for _, i := range c.order[:half-1] {
		c.units[i] = c.units[c.order[half-1]]
	}
	sum := 0
	for _, i := range c.order[half-1:] {
		sum += c.units[i]
	}
	return sum >= d
}
