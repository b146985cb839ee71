// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "github.com/weftraft/weft/ecraft"

// A Push is units for a peer: the first Count of the sender's own slot.
type Push struct {
	Peer  uint64
	Count int
}

// Targets appends to dst the pushes of the node self when its units of an entry are
// durable: none without a slot.
//
// Every node computes the same schedule from the header alone. By it,
//
//   - a node with a slot gets the units that it lacks to D, if the others with slots hold
//     as many;
//   - the node gets no unit twice, because each sender has a strip of its own;
//   - no sender can be relieved by one that sends less (up to evenSlots slots).
//
// If all hold the same, the schedule is a ring: at level l each sends its strip to the
// l-1 slots before its own.
func Targets(h *ecraft.Header, self uint64, dst []Push) []Push {
	slot := h.SlotOf(self)
	if slot < 0 || !anyLacks(h) {
		return dst
	}
	var buf grid
	g := newSchedule(h, &buf)
	for i := 1; i < h.Slots; i++ {
		to := (slot - i + h.Slots) % h.Slots
		if n := g.at(to, slot); n > 0 {
			dst = append(dst, Push{Peer: h.Members[to], Count: int(n)})
		}
	}
	return dst
}

// anyLacks reports whether any slot holds less than the payload.
func anyLacks(h *ecraft.Header) bool {
	for _, n := range h.Units {
		if int(n) < h.D {
			return true
		}
	}
	return false
}

// evenSlots is up to how many slots a schedule is evened out. Finding out who
// can relieve whom takes the cube of it.
const evenSlots = 16

// grid is room for the schedule of a group of usual size.
type grid [evenSlots * evenSlots]uint8

// schedule is how many units each slot sends to each other slot.
type schedule struct {
	h     *ecraft.Header
	units []uint8 // by receiver, then sender
}

// newSchedule computes the schedule of a header, in buf if it has room.
func newSchedule(h *ecraft.Header, buf *grid) schedule {
	g := schedule{h: h}
	if h.Slots <= evenSlots {
		g.units = buf[:h.Slots*h.Slots]
	} else {
		g.units = make([]uint8, h.Slots*h.Slots)
	}
	g.fill()
	if h.Slots <= evenSlots {
		g.even()
	}
	return g
}

func (g schedule) at(to, from int) uint8 { return g.units[to*g.h.Slots+from] }

// fill lets each slot receive whole strips of its successors on the ring until the slot
// has D units.
func (g schedule) fill() {
	for to := range g.h.Slots {
		lacks := uint8(g.h.D) - g.h.Units[to]
		for i := 1; i < g.h.Slots && lacks > 0; i++ {
			from := (to + i) % g.h.Slots
			n := min(lacks, g.h.Units[from])
			g.units[to*g.h.Slots+from] = n
			lacks -= n
		}
	}
}

// even moves deliveries from senders with much to send to senders with little, as long
// as a move brings any two closer. Each move lowers the sum of the squares of the
// loads, so the moves end; and without a move left, the schedule is the most even
// possible.
func (g schedule) even() {
	var loads [evenSlots]int
	for to := range g.h.Slots {
		for from := range g.h.Slots {
			loads[from] += int(g.at(to, from))
		}
	}
	var exact uint32 // senders that nobody can relieve, as things stand
	for {
		from, least := -1, 0
		for s := range g.h.Slots {
			if exact&(1<<s) == 0 && (from < 0 || loads[s] > loads[from]) {
				from = s
			}
			if loads[s] < loads[least] {
				least = s
			}
		}
		if from < 0 || loads[from]-loads[least] < 2 {
			return
		}
		if n, last := g.relieve(from, &loads); n > 0 {
			loads[from] -= n
			loads[last] += n
			exact = 0
		} else {
			exact |= 1 << from
		}
	}
}

// relieve finds the sender with the least to send that can take units off the sender
// from, directly or through others: a chain in which each sender takes over a delivery
// of the sender before. It moves so many units that the two ends come close, and
// returns their number, and the last sender.
func (g schedule) relieve(from int, loads *[evenSlots]int) (n, last int) {
	var before, via [evenSlots]int // the chain: who hands over to a slot, and whose delivery
	var queue [evenSlots]int
	seen, length := uint32(1)<<from, 1
	queue[0], last = from, from
	for i := 0; i < length; i++ {
		s := queue[i]
		for t := range g.h.Slots {
			if seen&(1<<t) != 0 {
				continue
			}
			if to := g.delivery(s, t); to >= 0 {
				seen |= 1 << t
				before[t], via[t] = s, to
				queue[length] = t
				length++
				if loads[t] < loads[last] {
					last = t
				}
			}
		}
	}
	n = (loads[from] - loads[last]) / 2
	for t := last; t != from; t = before[t] {
		n = min(n, int(g.at(via[t], before[t])), int(g.h.Units[t]-g.at(via[t], t)))
	}
	for t := last; t != from && n > 0; t = before[t] {
		g.units[via[t]*g.h.Slots+before[t]] -= uint8(n)
		g.units[via[t]*g.h.Slots+t] += uint8(n)
	}
	return n, last
}

// delivery returns a slot to which t can send units in the place of s, or -1.
func (g schedule) delivery(s, t int) int {
	for to := range g.h.Slots {
		if to != t && g.at(to, s) > 0 && g.at(to, t) < g.h.Units[t] {
			return to
		}
	}
	return -1
}
