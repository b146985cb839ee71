// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
)

// This file is what runs of joints are biased to.

// drawTheme biases a run to one meeting of coding, leases and changes; everything else
// stays as drawn.
func (p *plan) drawTheme(d world.Draws, seed uint64) {
	c, j := p.coded, p.joints
	codes := func(level int) { c.policy, c.level, c.threshold = policyFixed, level, 1 }
	switch j.theme {
	case themeCarrier:
		p.drawCarrier(d)
	case themeRow:
		codes(d.Between(2, 3))
		j.lag, j.lagMost = 0.9, d.Span(50*time.Millisecond, mostLag)
		for id := range j.order {
			j.order[id] = reportThenApply
		}
		p.actsOf(d, 40*time.Millisecond, actPropose, actChange, actPropose, actChange, actPropose, actReplace, actPropose, actChange, actChange)
	case themeTorn:
		p.oneByOne, p.forgetful, p.killOnly, j.tear = true, false, false, 1
		c.impatient, j.old, j.lag, j.lagMost = true, true, 0.3, d.Span(10*time.Millisecond, electionTime)
		j.codes, j.leases, j.upstream, c.brief.rest = true, true, 0, 10*electionTime
		p.voters, p.spares, p.outage = 3, 3, 5*electionTime
		p.lie(seed, ambush{on: momentLogged, kind: actDoom, chance: 0.3, self: true, left: 2})
		p.lie(seed, ambush{on: momentTwoSets, kind: actSplit, chance: 1, self: true, left: 2, most: world.Pick(d, 0, 10*time.Millisecond, 40*time.Millisecond)})
		p.actsOf(d, 60*time.Millisecond, actPropose, actJoin, actPropose, actJoin, actPropose, actJoin, actPropose, actPropose, actPropose)
	case themeStuck:
		p.voters, p.spares = 3, 2
		codes(2)
		j.old, p.trailing, c.falls.pushLoss, c.dead, j.lag, j.upstream = true, 0, 1, 0, 0, 0
		c.brief.unheard, c.brief.deaf, c.brief.topple, c.brief.ambushes, c.brief.breaks = 0, 0, 0, nil, nil
		c.brief.rest = 10 * electionTime
		p.actsOf(d, 200*time.Millisecond, actPropose)
	case themeResponder:
		p.drawResponder(d)
	case themeUpstream:
		p.voters, p.spares = world.Pick(d, 3, 5), 2
		codes(2)
		j.upstream = 3 << (p.voters + 1)
		p.actsOf(d, 20*time.Millisecond, actPropose, actDeafen, actStream, actChange, actTransfer, actPropose, actChange, actStream, actTransfer)
	}
}

// drawResponder has responders die that all voters are, where ticks come so far apart that
// the leader takes each gap for a pause of its own.
func (p *plan) drawResponder(d world.Draws) {
	c, j := p.coded, p.joints
	p.voters, p.spares, j.upstream, c.dead = world.Pick(d, 3, 5), 0, 0, 1
	gap := d.Between(3, 8)
	if l := p.leased; l != nil {
		l.cfg.Wanted = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}
		l.cfg.Tuner, l.retune, l.ambush, l.rename, l.retire, l.late = nil, 0, 0, 0, 0, 0
		gap = min(int(l.cfg.Fail/2/tickTime)+d.Between(1, 2), 8)
	}
	for id := range j.gap {
		j.gap[id] = gap
	}
	j.steady = d.Chance(0.7)
	c.brief.ambushes, c.brief.rest = nil, world.Pick(d, 2*electionTime, 4*electionTime)
	p.actsOf(d, 100*time.Millisecond, actPropose, actPropose, actPropose)
}

// drawCarrier has a change wait for a voter to come, while entries are late: the voter
// answers then, or does not.
func (p *plan) drawCarrier(d world.Draws) {
	c, j := p.coded, p.joints
	c.policy, c.threshold, j.upstream, p.trailing = policyFixed, 1, 0, 10
	c.brief.ambushes, c.brief.topple, c.brief.unheard, c.brief.deaf = nil, 0, 0, 0
	j.codes, j.leases = true, d.Chance(0.3) // which hold most changes back in their turn
	p.checkpointEvery, j.lag, c.brief.rest, p.outage = 1000, 0, 3*electionTime, 4*electionTime
	if d.Chance(0.4) {
		p.voters, p.spares, c.level, c.falls.pushLoss = 5, 2, 3, 1
		p.actsOf(d, 20*time.Millisecond, actStream, actCrash, actStranger, actStream, actCrash, actStranger, actStream, actStranger)
		return
	}
	p.voters, p.spares, c.level = 3, 4, 2
	p.links.Least, p.syncMin = d.Span(500*time.Microsecond, 4*time.Millisecond), d.Span(20*time.Microsecond, time.Millisecond)
	p.links.Most, p.syncMax = p.links.Least+p.links.Least/4, p.syncMin+p.syncMin/4
	round := float64(2*p.links.Most + 2*p.syncMax)
	c.policy, j.predicted, c.clock, c.poll = policyTimed, timeOf(round*d.Scale(1.1, 3)/hedges), true, false
	p.actsOf(d, 200*time.Millisecond, actLate, actMend, actLate, actMend, actLate)
}

// actsOf has a run consist of acts of these kinds, in order but for some that are left out.
func (p *plan) actsOf(d world.Draws, longest time.Duration, kinds ...actKind) {
	b := p.coded.brief
	if b.hurry.kind != hurryNot {
		return
	}
	b.acts = b.acts[:2]
	for _, k := range kinds {
		if d.Chance(0.85) {
			b.acts = append(b.acts, act{kind: k, wait: d.Span(50*time.Microsecond, longest), led: d.Chance(0.8)})
		}
	}
}

// hedges is after how many times its predicted time an entry is late.
const hedges = 6
