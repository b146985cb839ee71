// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/world"
)

// This file is joints: brief runs in which coding, leases and changes of the members are
// under way at once, at hosts that apply late. Each of the three holds alone; a mistake
// stands where one of them meets another, and is found where all are drawn together,
// close to each other.

// jointsPlan is a seed's draws about joints, on top of those of a brief run with leases.
type jointsPlan struct {
	// codes and leases say which extensions are on at members of this library.
	codes, leases bool
	// upstream is the nodes of upstream's library, by bit.
	upstream uint
	// order is when each node's host reports what it applies.
	order [maxNodes + 1]applyOrder
	// first is the nodes, by bit, whose hosts tell the core that they apply before they
	// report.
	first uint
	// lag is the chance of what is handed out to be applied late, by up to lagMost.
	lag     float64
	lagMost time.Duration
	// old says that hosts make no checkpoint where the members change, unless a
	// snapshot is asked for: a restart begins before the change.
	old bool
	// gap is how many ticks of a node come at once, at most; below 2, each comes alone.
	// steady says that so many come each time.
	gap    [maxNodes + 1]int
	steady bool
	// tear is the chance that a loss of power in a write with a change of the members
	// keeps all of the write but the hard state.
	tear float64
	// predicted is how long an entry takes by the timed policy.
	predicted time.Duration
	// theme is the bias of the run.
	theme theme
	draws world.Draws
}

// applyOrder is when a host reports entries as applied.
type applyOrder int

const (
	applyThenReport applyOrder = iota
	reportThenApply
)

// theme is what a run is biased to.
type theme int

const (
	themeNone      theme = iota
	themeCarrier         // a change waits while entries are raised
	themeRow             // changes follow each other at a host that applies late
	themeTorn            // two changes are left in a log without their commit index
	themeStuck           // a leader lacks what the others have compacted, and hands over
	themeResponder       // a responder dies, and the leader's ticks come in bursts
	themeUpstream        // nodes of upstream's library join a group that codes
	themes
)

// String returns the theme's name.
func (t theme) String() string {
	return [themes]string{"none", "carrier", "row", "torn", "stuck", "responder", "upstream"}[t]
}

// mostLag is how late a host applies at most.
const mostLag = 20 * electionTime

// drawJoints makes a brief run with leases one of joints. Both parts have their draws.
func (p *plan) drawJoints(seed uint64, opts options) {
	d := world.NewDraws(seed, 30)
	j := &jointsPlan{codes: true, leases: true, draws: world.NewDraws(seed, 31), tear: world.Pick(d, 0, 0.5, 1)}
	p.joints = j
	switch d.IntN(10) {
	case 0:
		j.codes = p.coded.brief.hurry.kind != hurryNot // such hosts need coding
	case 1:
		j.leases = false
	}
	j.theme = world.Pick(d, themeNone, themeNone, themeNone, themeCarrier, themeCarrier, themeRow, themeTorn, themeTorn, themeStuck, themeResponder, themeUpstream)
	if p.coded.brief.hurry.kind != hurryNot {
		j.theme = themeNone // such hosts have acts and an order of their own
	}
	p.drawJointHosts(d)
	p.drawJointActs(d)
	p.drawJointAmbushes(d, seed)
	p.drawTheme(d, seed)
	if !j.leases {
		p.leased = nil
	}
	p.settleJoints()
	if opts.Quick {
		p.drawQuick(d)
	}
	b, skip := p.coded.brief, opts.Skip
	for i := range b.acts {
		b.acts[i].skip = skip>>i&1 == 1
	}
	for i, a := range b.ambushes {
		a.skip = skip>>(mostActs+1+i)&1 == 1
	}
}

// drawQuick leaves little of a run: a few nodes, and a few acts in a row.
func (p *plan) drawQuick(d world.Draws) {
	b := p.coded.brief
	p.voters, p.spares, p.clients = min(p.voters, d.Between(3, 4)), min(p.spares, 2), 0
	if first, n := 2, len(b.acts); n > first+3 && p.joints.theme == themeNone {
		first += d.IntN(n - first - 3)
		b.acts = append(b.acts[:2:2], b.acts[first:first+d.Between(1, 3)]...)
	}
	b.rest = min(b.rest, 2*electionTime)
}

// drawJointHosts draws what the hosts are like.
func (p *plan) drawJointHosts(d world.Draws) {
	j := p.joints
	p.prepared, p.async = true, d.Chance(0.4)
	p.spares = min(max(p.spares, d.Between(1, 3)), maxNodes-p.voters)
	p.preVote = true // see drawFaults
	j.lag, j.lagMost = world.Pick(d, 0, 0.2, 0.5, 0.9), d.Span(time.Millisecond, mostLag)
	first := world.Pick(d, 0, 0.5, 1)
	for id := range j.order {
		if d.Chance(first) {
			j.order[id] = reportThenApply
		}
	}
	j.first = uint(d.IntN(1<<maxNodes)) << 1
	j.old = d.Chance(0.6)
	if d.Chance(0.4) {
		for id := range j.gap {
			j.gap[id] = world.Pick(d, 1, 1, d.Between(2, 4), d.Between(3, 7))
		}
	}
	if d.Chance(0.2) {
		some, others := uint(d.IntN(1<<maxNodes)), uint(d.IntN(1<<maxNodes))
		j.upstream = some & others << 1
		if p.coded.brief.hurry.kind != hurryNot {
			j.upstream = 0
		}
	}
	p.coded.late = 0
	p.coded.dead = world.Pick(d, 0, 0.5, 1)
	p.oneByOne = d.Chance(0.6)
	p.coded.impatient = p.coded.impatient || d.Chance(0.7)
}

// drawJointActs draws acts anew, of the kinds that meet in joints.
func (p *plan) drawJointActs(d world.Draws) {
	b := p.coded.brief
	if b.hurry.kind != hurryNot {
		p.joints.order = [maxNodes + 1]applyOrder{} // such hosts know what is in force
		return
	}
	kinds := []actKind{actPropose, actPropose, actChange, actChange, actChange, actReplace, actTransfer, actCrash, actDoom, actRestart,
		actRepair, actUpset, actIsolate, actPartition, actMend, actPause, actSlowDisk, actCampaign, actCompact, actCompact, actWish, actWish, actLag, actSplit, actStarve}
	few := kinds[:0:0]
	for _, k := range kinds {
		if k == actPropose || k == actChange || d.Chance(0.5) {
			few = append(few, k)
		}
	}
	longest := world.Pick(d, 5*time.Millisecond, 40*time.Millisecond, 150*time.Millisecond)
	b.acts = []act{{kind: actCampaign}, {kind: actPropose, led: true, wait: time.Duration(3*p.heartbeatTick) * tickTime}}
	for range int(d.Scale(3, mostActs-2)) {
		b.acts = append(b.acts, act{kind: few[d.IntN(len(few))], wait: d.Span(10*time.Microsecond, longest), led: d.Chance(0.6)})
	}
}

// jointMoments is the moments in which one extension's work is under way; see ambushOn.
var jointMoments = []moment{momentLogged, momentHanded, momentReported, momentInForce, momentRaised, momentGranted, momentTransfer, momentTwoSets, momentElected, momentSnapshot}

// jointActs is the acts of ambushes at these moments.
var jointActs = []actKind{actCrash, actDoom, actSwap, actIsolate, actSplit, actPause, actSlowDisk, actCampaign, actTransfer, actCompact, actPropose,
	actChange, actChange, actReplace, actUpset, actStarve, actWish, actLag}

// drawJointAmbushes draws ambushes for the moments of joints.
func (p *plan) drawJointAmbushes(d world.Draws, seed uint64) {
	b := p.coded.brief
	b.ambushes = nil
	if d.Chance(0.2) {
		return
	}
	for range d.Between(1, mostAmbushes) {
		p.lie(seed, ambush{on: jointMoments[d.IntN(len(jointMoments))], kind: jointActs[d.IntN(len(jointActs))], chance: world.Pick(d, 0.1, 0.5, 1), self: d.Chance(0.5),
			most: world.Pick(d, 0, 100*time.Microsecond, 2*time.Millisecond, 30*time.Millisecond), left: world.Pick(d, 1, 2, 4)})
	}
}

// lie adds an ambush, in the place of the first if there are as many as may be.
func (p *plan) lie(seed uint64, a ambush) {
	b := p.coded.brief
	i := len(b.ambushes) % mostAmbushes
	a.draws = world.NewDraws(seed, uint64(2000+i))
	if len(b.ambushes) == mostAmbushes {
		b.ambushes[i] = &a
		return
	}
	b.ambushes = append(b.ambushes, &a)
}

// settleJoints keeps the hosts within what they must know.
func (p *plan) settleJoints() {
	j := p.joints
	if j.upstream != 0 {
		p.coded.late |= j.upstream
	}
	if !j.codes {
		p.coded.late = 1<<(maxNodes+1) - 1
	}
	if p.leased != nil {
		p.leased.late |= j.upstream
		p.checkQuorum = true
		if p.leased.late != 0 {
			p.coded.dead = 0 // voters without leases count against those that may be dead
		}
	}
}

// simpleOnly reports whether operators keep to simple changes of one member, because a
// leader that does not code would end a joint configuration twice where hosts report the
// end before they apply it.
func (j *jointsPlan) simpleOnly(p *plan) bool {
	return j != nil && p.coded.late > 0 && slices.Contains(j.order[:], reportThenApply)
}

// String lists the draws.
func (j *jointsPlan) String() string {
	return fmt.Sprintf("{%v; codes %v, leases %v, upstream %b, order %v, late %v up to %v, old %v, gap %v, tear %v}",
		j.theme, j.codes, j.leases, j.upstream, j.order, j.lag, j.lagMost, j.old, j.gap, j.tear)
}

// uneven reports whether some node's ticks come in bursts: such a node may take a burst
// for the silence of its leader.
func (j *jointsPlan) uneven() bool {
	return j != nil && slices.Max(j.gap[:]) > 1
}

// says reports whether a node's host tells the core that it applies changes of the members
// before it reports them.
func (j *jointsPlan) says(id uint64) bool {
	return j != nil && j.first>>id&1 == 1 && j.order[id] == applyThenReport
}
