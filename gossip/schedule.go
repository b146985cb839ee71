// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "github.com/weftraft/weft/ecraft"

// A Push is units for a peer: Count of the sender's own slot, from First on.
type Push struct {
	Peer         uint64
	First, Count int
}

// Peers is what a node knows of the other members, for Targets and PassOn.
type Peers struct {
	// Reader reports whether a member reads: the leader sends it headers.
	Reader func(id uint64) bool
	// Zone returns the zone of a member, this node or another; empty if not known. Nil, or empty for this
	// node: no zones.
	Zone func(id uint64) string
	// Down reports whether a member cannot be reached now; nil: all can be.
	Down func(id uint64) bool
}

// Targets appends to dst the pushes of the node self when its units of the entry at index
// are durable: none without a slot, none to members that are down. Pushes to readers come last.
//
// The slots at the end that were assigned no units, and whose members are readers,
// are left out of the schedule: see FirstReader. Among the others every
// node computes the same schedule from the header. By it,
//
//   - a node with a slot gets the units that it lacks to D, if the others with slots hold
//     as many;
//   - the node gets no unit twice, because each sender has a strip of its own;
//   - no sender can be relieved by one that sends less (up to evenSlots slots).
//
// If all hold the same, the schedule is a ring: at level l each sends its strip to the
// l-1 slots before its own.
//
// All together push one payload to the readers, each unit to one of them, who passes it on to
// the others. So readers cost the senders the bytes of one, however many there are.
//
// With zones, all this holds within each zone, and units come into a zone once: see zonePushes.
func Targets(h *ecraft.Header, self, index uint64, p Peers, dst []Push) []Push {
	slots, slot := FirstReader(h, p.Reader), h.SlotOf(self)
	if slot < 0 || slot >= slots {
		return dst
	}
	if p.zoned(self) {
		return p.zonePushes(h, slots, slot, index, dst)
	}
	dst = p.complete(h, slots, slot, dst)
	return p.spread(h, slots, slot, h.D, index, dst)
}

// complete appends a sender's pushes to the other of the first slots, by their schedule.
func (p Peers) complete(h *ecraft.Header, slots, slot int, dst []Push) []Push {
	if !anyLacks(h, slots) {
		return dst
	}
	var buf grid
	g := newSchedule(h, slots, &buf)
	for i := 1; i < slots; i++ {
		to := (slot - i + slots) % slots
		if n := g.at(to, slot); n > 0 && !p.down(h.Members[to]) {
			dst = append(dst, Push{Peer: h.Members[to], Count: int(n)})
		}
	}
	return dst
}

func (p Peers) down(id uint64) bool { return p.Down != nil && p.Down(id) }

// up returns the first of some members that is not down, from position at on, around; 0: all are.
func (p Peers) up(ids []uint64, at int) uint64 {
	for i := range ids {
		if id := ids[(at+i)%len(ids)]; !p.down(id) {
			return id
		}
	}
	return 0
}

// FirstReader returns the first of the slots at the end of the header that are readers':
// without units, and of members that reader names. Without any it is the number of slots.
func FirstReader(h *ecraft.Header, reader func(id uint64) bool) int {
	first := h.Slots
	for first > 0 && h.Units[first-1] == 0 && reader(h.Members[first-1]) {
		first--
	}
	return first
}

// spread appends a sender's part of the units that the first slots push to the others, which are
// D or fewer. The units are taken in turn from one sender after the other, the first units first, and
// go to one receiver after the other; index decides who begins.
func (p Peers) spread(h *ecraft.Header, slots, sender, units int, index uint64, dst []Push) []Push {
	receivers := h.Members[slots:]
	if len(receivers) == 0 || slots == 0 {
		return dst
	}
	turn, from, sent := int(index%uint64(len(receivers))), int(index%uint64(slots)), 0
	for unit := 0; unit < h.D; unit++ {
		for i := 0; i < slots && sent < units; i++ {
			s := (from + i) % slots
			if int(h.Units[s]) <= unit {
				continue
			}
			if s == sender {
				if to := p.up(receivers, turn+sent); to != 0 {
					dst = append(dst, Push{Peer: to, First: unit, Count: 1})
				}
			}
			sent++
		}
	}
	return dst
}

// anyLacks reports whether any of the first slots holds less than the payload.
func anyLacks(h *ecraft.Header, slots int) bool {
	for _, n := range h.Units[:slots] {
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
	slots int     // that push and receive
	units []uint8 // by receiver, then sender
}

// newSchedule computes the schedule of the first slots of a header, in buf if it has room.
func newSchedule(h *ecraft.Header, slots int, buf *grid) schedule {
	g := schedule{h: h, slots: slots}
	if slots <= evenSlots {
		g.units = buf[:slots*slots]
	} else {
		g.units = make([]uint8, slots*slots)
	}
	g.fill()
	if slots <= evenSlots {
		g.even()
	}
	return g
}

func (g schedule) at(to, from int) uint8 { return g.units[to*g.slots+from] }

// fill lets each slot receive whole strips of its successors on the ring until the slot
// has D units.
func (g schedule) fill() {
	for to := range g.slots {
		lacks := uint8(g.h.D) - g.h.Units[to]
		for i := 1; i < g.slots && lacks > 0; i++ {
			from := (to + i) % g.slots
			n := min(lacks, g.h.Units[from])
			g.units[to*g.slots+from] = n
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
	for to := range g.slots {
		for from := range g.slots {
			loads[from] += int(g.at(to, from))
		}
	}
	var exact uint32 // senders that nobody can relieve, as things stand
	for {
		from, least := -1, 0
		for s := range g.slots {
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
		for t := range g.slots {
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
		g.units[via[t]*g.slots+before[t]] -= uint8(n)
		g.units[via[t]*g.slots+t] += uint8(n)
	}
	return n, last
}

// delivery returns a slot to which t can send units in the place of s, or -1.
func (g schedule) delivery(s, t int) int {
	for to := range g.slots {
		if to != t && g.at(to, s) > 0 && g.at(to, t) < g.h.Units[t] {
			return to
		}
	}
	return -1
}
