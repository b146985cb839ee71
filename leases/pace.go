// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// pace is how long a node takes to acknowledge entries, by the leader's clock: rule L33.
//
// A lag is the time from the append of an entry at the leader to its acknowledgement by a node.
// A trip is the time from a request to its answer, which waits for no disk. What a
// lag has beyond the node's best trip is work: the node's disk and processor, and what its links
// have become slower by. Distance is in the trip, and never in the work.
type pace struct {
	began Instant       // of the window; 0: none has begun
	sum   time.Duration // of the window's lags
	count int           // of the window's lags
	lag   time.Duration // the mean of the window before; 0 if it showed nothing
	slow  int           // in how many windows the node limped, less those since in which it did not
	trips
}

// trips are the trips to a node, measured whoever leads: rule L34.
type trips struct {
	// The best trip of this period and of the one before; 0 if there was none.
	best, former time.Duration
	period       Instant // when this period began
}

// Bounds of the search for responders that limp.
const (
	// A window of lags lasts for a part of Fail at least, and until it has windowLags lags, so
	// that a single entry decides nothing. Where fewer are appended in windowFails Fails, the
	// window shows nothing: few writes wait, and what failed is found by other means.
	windowsPerFail, windowLags, windowFails = 16, 4, 8
	// A responder is removed once it has limped in limpWindows windows more than not: all that
	// a disk acknowledges after it has stood still once is in one window. It keeps up again
	// once that is wellWindows or less: a node that is well still stands still at times.
	limpWindows, wellWindows = 6, 2
	// A node limps if its lag is longer than what it should be by more than limpShare of that, and
	// limpFloor. Neighbours on equal machines differ by less, in most windows. The floor is for lags
	// so short that the scheduler of the system makes the difference.
	limpShare = 2 // a half
	limpFloor = time.Millisecond
	// Lags are taken from lagsPerFail appends in a Fail at most.
	lagsPerFail = 128
	// A trip counts as the node's best for tripFails to 2*tripFails Fails: a link that has been
	// slow for as long is a longer link.
	tripFails = 512
	// Once in promptFails Fails an answer does not wait for the next heartbeat, which would count as distance.
	promptFails = 4
)

// appended notes when entries were appended, for their lags.
func (l *leading) appended(at Instant, last Index, fail time.Duration) {
	if k := len(l.appends); at == 0 || k > 0 && at.since(l.appends[k-1].at) < fail/lagsPerFail {
		return
	}
	if len(l.appends) >= lagsPerFail {
		l.appends = append(l.appends[:0], l.appends[1:]...)
	}
	l.appends = append(l.appends, mark{at: at, last: last})
}

// acknowledged takes the acknowledgement of a node.
func (l *leading) acknowledged(now Instant, f *follow, i Index) {
	for k := len(l.appends) - 1; k >= 0 && l.appends[k].last > f.match; k-- {
		if a := l.appends[k]; a.last <= i {
			f.pace.sum += now.since(a.at)
			f.pace.count++
		}
	}
	f.match = max(f.match, i)
}

// travels takes a trip.
func (a *trips) travels(now Instant, trip, fail time.Duration) {
	if a.period == 0 || now.since(a.period) >= tripFails*fail {
		a.period, a.former, a.best = now, a.best, 0
	}
	a.best = shorter(a.best, max(trip, 1))
}

// trip returns the best trip to a node; 0 if none is known.
func (a *trips) trip() time.Duration { return shorter(a.best, a.former) }

// shorter returns the shorter of two durations, of which 0 is unknown.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// work returns what a node takes beyond its trip.
func (a *pace) work() time.Duration { return max(0, a.lag-a.trip()) }

// closes ends a window that has lasted, and reports whether one has ended.
func (a *pace) closes(now Instant, fail time.Duration) bool {
	lasted := now.since(a.began)
	switch {
	case a.began == 0:
	case lasted < fail/windowsPerFail || a.count < windowLags && lasted < windowFails*fail:
		return false
	case a.count < windowLags:
		a.lag = 0
	default:
		a.lag = max(1, a.sum/time.Duration(a.count))
	}
	ends := a.began != 0
	a.began, a.sum, a.count = now, 0, 0
	return ends
}

// measure looks, at a leader's tick, for nodes that limp.
func (n *Node) measure(now Instant) {
	n.leading.own.pace.closes(now, n.cfg.Fail)
	for _, p := range n.peers {
		a := &p.follow.pace
		switch {
		case !a.closes(now, n.cfg.Fail):
		case a.lag == 0:
			a.slow = 0
		case n.isSlow(now, a):
			a.slow = min(a.slow+1, limpWindows)
		default:
			a.slow = max(a.slow-1, 0)
		}
	}
}

// isSlow reports whether a node took longer, in its last window, than a node at its distance
// that works like the write quorum. A node within the quorum makes nobody wait.
func (n *Node) isSlow(now Instant, a *pace) bool {
	lag := n.quorum(now, func(b *pace) time.Duration { return b.lag })
	work := n.quorum(now, (*pace).work)
	should := max(lag, a.trip()+work)
	return a.trip() > 0 && a.lag > should+should/limpShare+limpFloor
}

// quorum returns what the voters of the fastest majority need at most, by a measure. A voter
// that does not keep up needs the longest time, and an entry of which the leader's disk says
// nothing is on that disk at once.
func (n *Node) quorum(now Instant, of func(*pace) time.Duration) time.Duration {
	return time.Duration(-n.members.majorityUntil(func(v NodeID) Instant {
		if v == n.cfg.ID {
			return -Instant(of(&n.leading.own.pace))
		}
		if f := &n.peer(v).follow; f.pace.lag > 0 && n.keepsUp(now, f) {
			return -Instant(of(&f.pace))
		}
		return -Instant(longest)
	}))
}
