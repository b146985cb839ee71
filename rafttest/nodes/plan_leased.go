// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// leasing is how roster leases are set in a run, and by which policies clients read.
type leasing struct {
	on       bool
	lease    time.Duration
	fail     time.Duration
	driftPPM int
	notes    bool
	tuner    bool
	spans    bool          // leases tell keys apart
	rosters  time.Duration // between two wishes of an operator for other responders
	probes   time.Duration // between two reads by nobody, anywhere, which need only be fresh
	policies bool          // clients read by all policies, and not by ReadIndex alone
}

// drawLeases has leases on in four of ten runs. They are off where changes of members are to
// stand in a log twice, which takes coincidences that the waits of leases make rare.
func drawLeases(d world.Draws, p *plan, opts options) leasing {
	l := leasing{
		on:       d.Chance(0.65) && !p.noPreVote && !p.noCheckQuorum && (!p.repeats.again || !p.repeats.uneven) && opts.Core == nil,
		lease:    world.Pick[time.Duration](d, 60, 100, 100, 300) * time.Millisecond,
		fail:     world.Pick[time.Duration](d, 40, 50, 200) * time.Millisecond,
		driftPPM: world.Pick(d, 100, 1000, 60_000),
		notes:    d.Chance(0.5),
		tuner:    d.Chance(0.2),
		spans:    d.Chance(0.5),
		policies: d.Chance(0.5),
	}
	if rosters, probes := d.Every(0.7, 30*time.Millisecond, 500*time.Millisecond), d.Every(0.7, 2*time.Millisecond, 30*time.Millisecond); l.on {
		l.rosters, l.probes = rosters, probes
	}
	return l
}

// placing is whether nodes measure themselves and hand over to faster and to preferred nodes, and their
// weights, as settings: see placement.Weigh.
type placing struct {
	on      bool
	weights [maxNodes + 1]int
}

// drawPlacing has placement on in six of ten runs, half of these with weights that differ.
func drawPlacing(d world.Draws) (p placing) {
	p.on = d.Chance(0.6)
	if d.Chance(0.5) {
		for id := range p.weights {
			p.weights[id] = world.Pick(d, 0, 0, 50, 200, -1)
		}
	}
	return p
}
