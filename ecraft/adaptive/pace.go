// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"time"
)

// Pace. Entries that a follower missed can wait; new entries cannot, and leave by the same
// interface. So at most as many missed entries are on their way as keep the follower's connection
// busy.

const (
	// paceSlack is the number of bytes that may wait for the interface beyond the bytes of a round
	// trip, so that a late answer does not leave the interface idle. The slack doubles every
	// paceDoubles.
	paceSlack   = 32 << 10
	paceDoubles = 8 * time.Second
	pacePiece   = 16 << 10 // no message leaves for fewer bytes, if there are more
	maxPace     = 1 << 30  // bound of the bytes that leave in the round trip of a far follower
)

// Room implements Pacer: the bytes of a round trip keep the connection busy. A short message counts
// as a long message: the message may carry only the headers of large entries, but the leader reads
// these entries whole to make the message, and new entries wait for the reading as well.
//
// Messages with entries from next on were lost, are to be sent again, and do not count.
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
