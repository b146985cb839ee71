// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// coding is how entries are coded in a run.
type coding struct {
	on        bool
	threshold int
	level     int // 0: as the adaptive policy finds
	memory    int
	gap       int
	delay     int
	lateSeal  bool
	densify   time.Duration // between two times at which nothing is to be coded for a while
}

// drawCoding has coding on in two of three runs.
func drawCoding(d world.Draws) coding {
	c := coding{
		on:        d.Chance(0.67),
		threshold: world.Pick(d, 1, 1, 64, 512),
		level:     world.Pick(d, 0, 0, 0, 1, 2, 3),
		memory:    world.Pick(d, 0, 0, 4<<20), // some payloads at least
		gap:       world.Pick(d, 0, 0, 1000, 100_000),
		delay:     world.Pick(d, 0, 3),
		lateSeal:  d.Chance(0.5),
	}
	if c.on {
		c.densify = d.Every(0.1, 200*time.Millisecond, 2*time.Second)
	}
	return c
}

// naming is whether leaders give names, and how often followers miss the batches named: see package
// names.
type naming struct {
	on bool
	// former are bits of the nodes of an earlier version, which know of no names.
	former uint64
	forget float64 // chance that a batch is missing
	// zones is over how many zones the nodes are spread; 0: none is known. Relays are on with zones, also without names
	// of batches.
	zones uint64
	// formerRelays are bits of nodes of an earlier version, which know of no relays.
	formerRelays uint64
	// readers has relays on without zones. formerRuns are bits of nodes of an earlier version, which know of no runs, and hold is
	// for how long leaders hold appends to learners.
	readers    bool
	formerRuns uint64
	hold       time.Duration
}

// drawNames has names on in half of the runs, a third of these with nodes of an earlier version.
func drawNames(d world.Draws) (p naming) {
	p.on = d.Chance(0.5)
	if d.Chance(0.33) {
		p.former = d.Uint64()
	}
	p.forget = world.Pick(d, 0, 0.005, 0.2, 1)
	return p
}

// drawZones has zones in half of the runs, a third of these with nodes of an earlier version.
func (p *naming) drawZones(d world.Draws) {
	p.zones = world.Pick[uint64](d, 0, 0, 0, 1, 2, 3)
	if d.Chance(0.33) {
		p.formerRelays = d.Uint64()
	}
}

// drawReaders has readers have relays without zones in half of the runs that have none, and appends to readers held in most.
func (p *naming) drawReaders(d world.Draws) {
	p.readers = d.Chance(0.5)
	if d.Chance(0.33) {
		p.formerRuns = d.Uint64()
	}
	p.hold = world.Pick(d, -1, time.Millisecond, tickTime/2, tickTime/2)
}

// zone returns the zone of a node.
func (p *naming) zone(node uint64) string {
	if p.zones == 0 {
		return ""
	}
	return string(rune('a' + node%p.zones))
}

func (p *naming) relays(node uint64) bool {
	return (p.zones > 0 || p.readers) && p.takes(node) && p.formerRelays>>(node%64)&1 == 0
}

func (p *naming) runs(node uint64) bool { return p.relays(node) && p.formerRuns>>(node%64)&1 == 0 }

func (p *naming) takes(node uint64) bool { return p.former>>(node%64)&1 == 0 }
