// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import "github.com/weftraft/weft/ecraft/internal/ring"

// nicMarks are remembered of late.
const nicMarks = 1024

// nic is the leader's interface, which all connections share: bytes leave it
// in the order in which they were handed over.
type nic struct {
	sent  float64 // bytes ever
	marks ring.Ring[nicMark]

	cost           float64 // seconds a byte
	queue, drained float64 // bytes thought to wait, and when that was so

	// See agree: the last answer's connection, to which side it was off, and how
	// many before it were.
	by           *link
	side, agreed float64
}

// nicMark says that so many of all bytes had left by a time. A mark is later
// than the one before it, and of more bytes.
type nicMark struct{ at, bytes float64 }

// reset begins anew with nothing on its way.
func (n *nic) reset(now float64) {
	n.marks.Init(nicMarks)
	n.marks.Push(nicMark{now, n.sent})
	n.queue, n.drained = 0, now
	if n.cost == 0 {
		n.cost = slowLink
	}
}

// drain lets the queue's model run up to now.
func (n *nic) drain(now float64) {
	if now > n.drained {
		n.queue = max(0, n.queue-(now-n.drained)/n.cost)
		n.drained = now
	}
}

// send notes bytes that were handed over.
func (n *nic) send(bytes, now float64) {
	n.drain(now)
	n.sent += bytes
	n.queue += bytes
}

// adjust puts the queue's model right: all that was handed over up to some bytes
// had left by a time.
func (n *nic) adjust(at, upTo, now float64) {
	n.drain(now)
	n.queue = max(0, n.sent-upTo-(now-at)/n.cost)
}

// left notes what an answer shows: its message had left by then, and with it
// all that was handed over earlier.
func (n *nic) left(at, bytes float64) bool {
	if n.marks.Len() > 0 && n.marks.Back().bytes >= bytes {
		return false
	}
	for n.marks.Len() > 0 && n.marks.Back().at >= at {
		n.marks.PopBack()
	}
	if n.marks.Len() == nicMarks {
		n.marks.PopFront()
	}
	n.marks.Push(nicMark{at, bytes})
	return true
}

// leftBy returns how many of all bytes are known to have left by a time, or by
// the oldest mark if that is later.
func (n *nic) leftBy(at float64) float64 {
	lo, hi := 1, n.marks.Len() // all before lo are by then, none from hi on
	for lo < hi {
		if mid := (lo + hi) / 2; n.marks.At(mid).at <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return n.marks.At(lo - 1).bytes
}
