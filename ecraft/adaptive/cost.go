// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
)

// The cost of a byte at the interface is learnt about the median of the answers, not
// the mean. A link that stalls shows costs that bytes never have, and a mean believes
// these the more the longer the stall. So the cost goes by steps, up or down, and a
// step is as long for an answer that is ten times off as for an answer off by a half.

const (
	// fastLink is the least cost of a byte: at 100 Gbit/s.
	fastLink = 1 / 12.5e9
	// From sharp on, a third of the expected time, the distance of an answer does not
	// matter.
	sharp = 3
	// hurry is after how many answers that agree a step is twice as long, and
	// leap the longest there is: by about two thirds.
	hurry = 4
	leap  = 0.5
	// alike is how many times more than the median connections may show a byte
	// to cost and still be taken to show the same, once they have told enough;
	// until then it is poolLimit.
	alike = 2.5
)

// shown is the interface by the answers of one connection.
type shown struct {
	cost           float64 // of a byte
	told           float64 // answers ever
	answers, bytes float64 // of late, and the bytes in front of their messages
	at             float64 // when these were last brought to now
}

// tell takes an answer that shows more bytes to have left the interface: all bytes were
// in front of its message, which took t.
//
// Steps are long at first; later as long as it takes to forget as fast as sums
// do. An answer with few bytes in front of it shows more of the base than of the
// cost, so its step is shorter, and what crowds do is no news of it: see crowd.
func (l *link) tell(t, all, now float64, n *nic) {
	s := &l.shows
	kept := fade(now, s.at)
	s.at = now
	s.told++
	s.answers = s.answers*kept + 1
	s.bytes = s.bytes*kept + all
	off := (t-l.base-l.crowded)/max(all*s.cost, 1e-12) - 1
	side := min(max(sharp*off, -1), 1)
	step := max(1-kept, 1/(1+s.told)) * min(1, all*s.answers/s.bytes) * n.agree(l, side)
	s.cost = max(s.cost*math.Exp(min(step, leap)*side), fastLink)
}

// agree returns how much longer a step is for the answers before it that were all
// far off to the same side, each on another connection than the last. Where a link
// stalls, others soon show otherwise; if none does, it is the interface that changed.
func (n *nic) agree(l *link, side float64) float64 {
	switch {
	case side != n.side || math.Abs(side) < 1:
		n.agreed = 0
	case l != n.by:
		n.agreed++
	}
	n.by, n.side = l, side
	return 1 + n.agreed/hurry
}

// pool finds the cost of a byte at the interface, and the slower connections.
//
// Answers on a slow connection say of the interface what is not so, and where
// nothing follows they are the only ones to tell of its last bytes. So only
// connections count that agree with the median. What bytes on a connection seem
// to cost is compared with what those in front of them cost: taken by itself it
// would be self-fulfilling, as whoever is sent more bytes looks faster. A
// connection on which nothing ever came back is not slow: it may as well be far.
func (a *Policy) pool() {
	if len(a.links) == 0 {
		return
	}
	each := a.choice.sorted[:0]
	for _, l := range a.links {
		each = append(each, l.shows.cost)
	}
	slices.Sort(each)
	median := each[(len(each)-1)/2]
	var bytes, took float64
	for _, l := range a.links {
		s, limit := &l.shows, poolLimit
		if s.told >= minSamples {
			limit = alike
		}
		if s.cost <= limit*median {
			bytes += s.bytes
			took += s.bytes * s.cost
		}
	}
	a.nic.cost = took / bytes
	for _, l := range a.links {
		l.private = l.seen && l.seemsSlow(a.nic.cost) && !l.refuted()
		l.cost = a.nic.cost * float64(len(a.links))
		if l.private {
			l.cost = l.own
		}
	}
}
