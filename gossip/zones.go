// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// Zones are what bytes are dear to get into, such as data centres. The members of a zone push to each other as if they
// were a group of their own. The units that they lack to D together come from the voters of other zones, once: to one
// voter of the zone, the collector, another for each entry, who passes them on in the zone (PassOn). A zone without a
// voter that is up has its readers in the collector's place, each for some units.
//
// Nodes may differ in what they know of zones and of members that are down. Then some units are pushed twice, and
// some are not, which are pulled.

// zoned reports whether a node goes by zones.
func (p Peers) zoned(self uint64) bool { return p.Zone != nil && p.Zone(self) != "" }

// near reports whether a member stands in the zone of a node that goes by zones.
func (p Peers) near(self, id uint64) bool { return p.Zone(self) == p.Zone(id) }

// zonePushes appends the pushes of the member in a slot, one of the first slots, which are not readers'.
func (p Peers) zonePushes(h *ecraft.Header, slots, slot int, index uint64, dst []Push) []Push {
	zones := p.zonesOf(h)
	members := func(from, to int, wanted func(at int) bool) (list []int) {
		for at := from; at < to; at++ {
			if wanted(at) {
				list = append(list, at)
			}
		}
		return list
	}
	own := func(at int) bool { return zones[at] == zones[slot] }
	near := members(0, slots, own)
	group := part(h, near, members(slots, h.Slots, own))
	at := slices.Index(near, slot)
	dst = p.complete(group, len(near), at, dst)
	readers := p.spread(group, len(near), at, h.D, index, nil)
	for zone := range h.Slots {
		if zones[zone] != zone || zone == zones[slot] {
			continue
		}
		inside := func(at int) bool { return zones[at] == zone }
		senders := members(0, slots, func(at int) bool { return !inside(at) })
		voters, sender := members(0, slots, inside), slices.Index(senders, slot)
		lacks := h.D
		for _, at := range voters {
			lacks -= int(h.Units[at])
		}
		if to := p.collector(h, voters, index); to >= 0 {
			dst = merged(dst, p.spread(part(h, senders, []int{to}), len(senders), sender, lacks, index, nil))
		} else {
			readers = p.spread(part(h, senders, members(slots, h.Slots, inside)), len(senders), sender, lacks, index, readers)
		}
	}
	return append(dst, readers...)
}

// zonesOf returns the zone of each slot, as the first slot in the zone. A member whose zone is not known has a zone
// of its own.
func (p Peers) zonesOf(h *ecraft.Header) []int {
	zones, names := make([]int, h.Slots), make([]string, h.Slots)
	for at, id := range h.Members {
		names[at] = p.Zone(id)
		if zones[at] = at; names[at] != "" {
			zones[at] = slices.Index(names, names[at])
		}
	}
	return zones
}

// collector returns the slot of the voter that units are to come to, of one zone; -1: none is up. Voters that were
// assigned nothing, because they were silent or behind, are no collectors if another is up.
func (p Peers) collector(h *ecraft.Header, voters []int, index uint64) int {
	for _, sound := range []bool{true, false} {
		for i := range voters {
			at := voters[(int(index%uint64(len(voters)))+i)%len(voters)]
			if !p.down(h.Members[at]) && (h.Units[at] > 0 || !sound) {
				return at
			}
		}
	}
	return -1
}

// part returns the part of a header that some slots are, for a schedule.
func part(h *ecraft.Header, lists ...[]int) *ecraft.Header {
	sub := &ecraft.Header{Layout: ecraft.Layout{D: h.D}}
	for _, list := range lists {
		for _, at := range list {
			sub.Members, sub.Units = append(sub.Members, h.Members[at]), append(sub.Units, h.Units[at])
		}
	}
	sub.Slots = len(sub.Members)
	return sub
}

// merged appends pushes to one peer, of units that follow each other from the first on, as one.
func merged(dst, pushes []Push) []Push {
	if n := len(pushes); n > 0 {
		dst = append(dst, Push{Peer: pushes[0].Peer, Count: n})
	}
	return dst
}

// PassOn appends to dst the members to which the node self passes on units of an entry that the voter from has
// pushed to it: a reader to the other readers; a voter, units from another zone, to the other voters of its zone
// that lack some, and to one of its readers, who passes them on in turn. With zones, all these stand in the zone
// of self. Members that are down are left out.
func PassOn(h *ecraft.Header, self, from, index uint64, p Peers, dst []uint64) []uint64 {
	slots, slot := FirstReader(h, p.Reader), h.SlotOf(self)
	zoned := p.zoned(self)
	if slot < 0 || slot < slots && (!zoned || p.near(self, from)) {
		return dst
	}
	var readers []uint64
	for at, id := range h.Members {
		switch {
		case id == self || zoned && !p.near(self, id):
		case at >= slots:
			readers = append(readers, id)
		case slot < slots && int(h.Units[at]) < h.D && !p.down(id):
			dst = append(dst, id)
		}
	}
	if slot < slots {
		if to := p.up(readers, int(index%uint64(max(len(readers), 1)))); to != 0 {
			dst = append(dst, to)
		}
		return dst
	}
	return append(dst, slices.DeleteFunc(readers, p.down)...)
}
