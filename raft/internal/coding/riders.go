// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// Riding units are in the log for as long as their carrier, also when their entry is
// applied and its record gone. Other members may still need the units: a member that has
// not released the entry must be able to give all units assigned to the member.

// riders says which entries of the log carry units of which others.
type riders struct {
	// carriers are the indexes of carriers, ascending, by the riding entry.
	carriers map[ecraft.ID][]uint64
	// Carriers at from and behind are known. Carriers from seekFrom up to seekTo, which
	// is below from, were looked for later.
	from, seekFrom, seekTo uint64
	// seekTick is the tick of the last look; found is the last coded entry there.
	seekTick int
	found    uint64
	// first is the first index of the log when carriers were last forgotten.
	first uint64
}

func (x *riders) add(id ecraft.ID, at uint64) {
	if x.carriers == nil {
		x.carriers = map[ecraft.ID][]uint64{}
	}
	if list := x.carriers[id]; !slices.Contains(list, at) {
		list = append(list, at)
		slices.Sort(list)
		x.carriers[id] = list
	}
}

// keep forgets carriers that are not in [first, end) any more.
func (x *riders) keep(first, end uint64) {
	x.from, x.seekTo = min(x.from, end), min(x.seekTo, end)
	for id, list := range x.carriers {
		list = slices.DeleteFunc(list, func(at uint64) bool { return at < first || at >= end })
		if x.carriers[id] = list; len(list) == 0 {
			delete(x.carriers, id)
		}
	}
}

// seekPage bounds how much of the log is read in a tick.
const seekPage = 1 << 20

// seek looks for coded entries behind an applied entry, among entries not read at this
// node's start. Each tick reads a page.
func (g *ledger) seek(n *node, index uint64) {
	x := &g.riders
	first := n.log.First()
	lo := max(index+1, first)
	if lo >= x.from || x.seekTick == n.ticks {
		return
	}
	x.seekTick = n.ticks
	if lo < x.seekFrom || x.seekTo < first {
		x.seekFrom, x.seekTo = lo, lo
	}
	ents, err := n.log.Slice(x.seekTo, min(x.from, n.log.Last().Index+1), seekPage)
	if err != nil || len(ents) == 0 {
		return
	}
	for _, e := range ents {
		if !n.isEnvelope(e) {
			continue
		}
		x.found = max(x.found, e.GetIndex())
		if env, err := n.open(e); err == nil {
			for _, r := range env.Riders {
				x.add(r.ID, e.GetIndex())
			}
		}
	}
	if x.seekTo += uint64(len(ents)); x.seekTo < x.from {
		return
	}
	if x.from = x.seekFrom; x.from <= first {
		g.spans.lookedAt(first-1, x.found) // compacted entries may have been coded
	}
}

// riderUnits returns the units of an entry that carriers in this node's log have, and
// whether all carriers could be read.
func (g *ledger) riderUnits(n *node, id ecraft.ID) (units []ecraft.Strip, read bool) {
	if g.find(id.Index) == nil {
		g.seek(n, id.Index)
	}
	read = true
	for _, at := range g.riders.carriers[id] {
		var carrier *ecraft.Envelope
		term, err := n.log.Term(at)
		if err == nil {
			carrier, err = n.envelopeOf(ecraft.ID{Term: term, Index: at})
		}
		if err != nil {
			read = false
			continue
		}
		for i, r := range carrier.Riders {
			if r.ID == id {
				units = append(units, carrier.RiderUnits[i])
			}
		}
	}
	return units, read
}
