// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
)

// The cost of a byte at the interface is learnt near the median of the answers, not the mean. A
// link that stalls shows costs that bytes never have, and a mean would follow these costs the more
// the longer the stall. So the cost goes by steps, up or down, and a step is as long for an answer
// that is ten times off as for an answer off by a half.

const (
	// fastLink is the least cost of a byte: at 100 Gbit/s.
	fastLink = 1 / 12.5e9
	// An answer that is off by more than a third of the expected time, 1/sharp, counts as fully
	// off.
	sharp = 3
	// hurry is the number of agreeing answers after which a step is twice as long, and leap the
	// length of the longest step: about two thirds of the cost.
	hurry = 4
	leap  = 0.5
	// alike bounds the factor between the median and the cost that a connection shows, for
	// connections that count as showing the same interface. Before a connection has given enough
	// answers, the bound is poolLimit.
	alike = 2.5
)

// shown is the interface as the answers of a connection show the interface.
type shown struct {
	cost           float64 // of a byte
	told           float64 // number of all answers
	answers, bytes float64 // recent answers, and the bytes in front of their messages
	at             float64 // time to which the recent sums refer
}

// tell takes an answer that shows more bytes to have left the interface: all bytes were in front of
// the answered message, which took t.
//
// Steps are long at first; later a step is as long as the sums' forgetting allows. An answer with
// few bytes in front of its message shows the base more than the cost, so its step is shorter, and
// the delay of a crowd is taken off: see crowd.
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

// agree returns the factor of a step after earlier answers that were all far off to the same side,
// each on another connection than the answer before. At a link that stalls, the next answers of
// other links soon contradict; if they do not, the interface has changed.
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
// Answers on a slow connection show a wrong cost of the interface, and if no message follows, only
// these answers show the interface's last bytes. So only connections that agree with the median
// count. A connection's own cost is compared with the cost of all bytes in front of its messages:
// the cost alone would confirm itself, because a follower that is sent more bytes looks faster. A
// connection without any answer is not taken for slow: the follower may be far away instead.
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
