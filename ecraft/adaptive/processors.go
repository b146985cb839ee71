// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// Processors. Coding takes bytes from the leader's interface, and gives every member more work:
// followers send units to each other and put payloads together. Where all wait for processors, the
// work is a loss, however few bytes leave the leader.
//
// Two shares of time are compared. Members report the share for which their processors are busy. For
// links the share is the larger of two: for how much of the time full copies of the present entries
// would hold the interface, and for how much of its own time an entry's full copies would. The part
// with the larger share is what everybody waits for; if the part is the processors, entries travel
// as full copies.
//
// A majority commits an entry. So the leader's processors count, and those of the followers that a
// majority needs, the least busy followers first: a single busy follower changes nothing.
//
// Busy processors also delay answers, and a delayed answer looks like a slow interface. So an answer
// that is later than expected counts the less, the busier the processors at both ends are; an answer
// that is sooner than expected counts in full, because a processor never makes an interface faster.

const (
	busyFrom   = 0.5 // the share of time up to which processors delay no work
	scarce     = 0.8 // links must have less than this share of the processors' share
	busyMemory = 0.5 // seconds over which the share of links is averaged
)

// processors is what is known of processors.
type processors struct {
	leader float64 // share of time for which the leader's are busy
	links  average // the share of links
	bind   bool    // processors are what entries wait for
}

// Busy implements Worker.
func (a *Policy) Busy(member uint64, share float64) {
	share = min(max(share, 0), 1)
	if member == 0 {
		a.processors.leader = share
	} else if l := a.link(member); l != nil {
		l.busy = share
	}
}

// idle is the weight of an answer that is later than expected, for the busier of two processors.
func idle(leader, follower float64) float64 {
	return min(1, (1-max(leader, follower))/(1-busyFrom))
}

// busiest returns the share of time for which processors are busy that a commit needs.
func (a *Policy) busiest(r *ecraft.Round) float64 {
	c := &a.choice
	c.sorted = c.sorted[:0]
	for _, i := range c.byCost {
		c.sorted = append(c.sorted, c.peers[i].busy)
	}
	slices.Sort(c.sorted)
	return max(a.processors.leader, c.sorted[r.Voters/2-1])
}

// processorsBind reports whether an entry waits for processors rather than links; full is the
// candidate of full copies. A verdict changes only if the shares have changed places by a margin.
func (a *Policy) processorsBind(r *ecraft.Round, full candidate) bool {
	p := &a.processors
	p.links.add(max(full.busy, full.tx/full.time), r.Now.Seconds(), busyMemory)
	busy := a.busiest(r)
	if p.bind {
		p.bind = busy > scarce*busyFrom && busy > p.links.value
	} else {
		p.bind = busy > busyFrom && scarce*busy > p.links.value
	}
	return p.bind
}
