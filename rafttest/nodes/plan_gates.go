// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// gatePlan is what a seed draws of gateways.
type gatePlan struct {
	gates                int
	share                float64       // of the tries of clients that go to gateways
	crash, cutOff, pause time.Duration // mean times between faults; 0: none
	// earlier has the bits of the nodes of an earlier version, which know nothing of gateways until
	// the calm.
	earlier uint64
	busy    bool // the processors of members are busy
	// homes is the mean time between two troubles of the home of a gateway, and of no other node.
	homes time.Duration
	// book is set if the gateways have a book of addresses with nodes that are no members, or never were.
	book bool
}

// drawGates draws the gateways of a run.
func drawGates(d world.Draws) gatePlan {
	p := gatePlan{gates: 1 + d.IntN(2), share: world.Pick(d, 0.5, 0.8, 1)}
	p.crash = d.Every(0.5, 100*time.Millisecond, time.Second)
	p.cutOff = d.Every(0.6, 100*time.Millisecond, time.Second)
	p.pause = d.Every(0.4, 100*time.Millisecond, time.Second)
	if d.Chance(0.2) {
		p.earlier = 1 << (1 + d.IntN(5))
	}
	p.busy = d.Chance(0.3)
	p.homes, p.book = d.Every(0.5, 50*time.Millisecond, time.Second), d.Chance(0.3)
	return p
}

// shorten makes a run with gateways brief: one small group with small commands, and all that happens a number of times as often as in
// other runs, for a time that is shorter by the same number.
func (p *plan) shorten(d world.Draws) {
	const times = 4
	p.duration /= times
	p.groups, p.voters, p.clients = 1, world.Pick(d, 1, 3, 3, 3, 3, 4), 2+d.IntN(2)
	p.largest = min(p.largest, 1<<10)
	for _, t := range []*time.Duration{
		&p.deadline, &p.outage, &p.crash, &p.kill, &p.tornWrite, &p.partition, &p.isolate, &p.oneWay, &p.slowLink, &p.holdLink,
		&p.slowDisk, &p.fullDisk, &p.hungDisk, &p.slowMachine, &p.damage, &p.pause, &p.transfer, &p.campaign,
		&p.gates.crash, &p.gates.cutOff, &p.gates.pause, &p.gates.homes,
	} {
		*t /= times
	}
	p.think, p.deadline = p.think/2, max(p.deadline, electionTime)
}

// knows reports whether a node is of a version that knows gateways.
func (p *gatePlan) knows(node uint64) bool { return p.earlier>>node&1 == 0 }
