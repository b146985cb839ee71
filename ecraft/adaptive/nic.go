// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import "github.com/weftraft/weft/ecraft/internal/ring"

// nicMarks is the number of marks that are remembered.
const nicMarks = 1024

// nic is the leader's interface, which all connections share: bytes leave it
// in the order in which they were handed over.
type nic struct {
	sent  float64 // bytes of all time
	marks ring.Ring[nicMark]

	cost           float64 // seconds a byte
	queue, drained float64 // bytes that wait by the model, and the time to which queue refers

	// See agree: the connection of the last answer, the side to which the answer was off, and the
	// number of agreeing answers before.
	by           *link
	side, agreed float64
}

// nicMark says that this number of all bytes had left by a time. A mark is later than the previous
// mark, and has more bytes.
type nicMark struct{ at, bytes float64 }

// reset starts again with no bytes on their way.
func (n *nic) reset(now float64) {
	n.marks.Init(nicMarks)
	n.marks.Push(nicMark{now, n.sent})
	n.queue, n.drained = 0, now
	if n.cost == 0 {
		n.cost = slowLink
	}
}

// drain advances the model of the queue to now.
func (n *nic) drain(now float64) {
	if now > n.drained {
		n.queue = max(0, n.queue-(now-n.drained)/n.cost)
		n.drained = now
	}
}

// send notes bytes handed to the interface.
func (n *nic) send(bytes, now float64) {
	n.drain(now)
	n.sent += bytes
	n.queue += bytes
}

// adjust corrects the model of the queue: the first upTo bytes had left by time at.
func (n *nic) adjust(at, upTo, now float64) {
	n.drain(now)
	n.queue = max(0, n.sent-upTo-(now-at)/n.cost)
}

// left notes that bytes had left by time at, as an answer shows for its message and all earlier
// bytes, and reports whether the mark is new.
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

// leftBy returns the number of bytes known to have left by a time, or by the oldest mark if the
// mark is later.
func (n *nic) leftBy(at float64) float64 {
	lo, hi := 1, n.marks.Len() // marks before lo are not after at, marks from hi on are
	for lo < hi {
		if mid := (lo + hi) / 2; n.marks.At(mid).at <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return n.marks.At(lo - 1).bytes
}
