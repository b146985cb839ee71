// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"time"
)

// Pace. What a follower missed can wait; what is new cannot, and leaves by the same
// interface. So no more of it is on its way than keeps the follower's connection busy.

const (
	// paceSlack is how many bytes may wait for the interface beyond what leaves in
	// a round trip, so that an answer that is late does not leave it idle. It
	// doubles each paceDoubles.
	paceSlack   = 32 << 10
	paceDoubles = 8 * time.Second
	pacePiece   = 16 << 10 // no message for fewer bytes, if there are more
	maxPace     = 1 << 30  // bytes that leave in the round trip of a far follower, at most
)

// Room implements Pacer: what leaves in a round trip keeps the connection busy. A
// short message counts for a long one: of large entries it may carry headers only, but
// to make it the leader reads them whole, and new entries wait for that as well.
//
// What was sent from next on is to be sent again: it was lost, and is in nobody's way.
func (a *Policy) Room(to, next uint64, lagging time.Duration) int {
	l := a.link(to)
	if l == nil {
		return maxPace
	}
	trip := (l.base + l.held) / max(a.nic.cost, l.alone())
	slack := math.Ldexp(paceSlack, int(min(lagging/paceDoubles, 16)))
	room := min(trip, maxPace) + slack
	for i := range l.out.Len() {
		switch m := l.out.At(i); {
		case m.last >= next:
		case m.bytes < pacePiece:
			room -= paceSlack
		default:
			room -= m.bytes
		}
	}
	if room < pacePiece {
		return 0
	}
	return int(room)
}
