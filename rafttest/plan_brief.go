// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/world"
)

// This file is brief runs: a few nodes, a few entries, a fraction of a second, and
// a handful of things that happen. Most mistakes in a protocol need no more, and
// many brief runs try more such handfuls than a few long ones.
//
// Each run draws first which kinds of things may happen in it at all: a run of few kinds
// has many things of each. Then it draws the times of the things: close together,
// while messages and writes are under way, or so far apart that timers run out.
//
// In half of the runs messages, writes and clocks keep step: all take the same time
// and keep their order, but for a few that are held for long. The chance to find a mistake
// that needs k late things, and order otherwise, then falls with k, and not with the
// length of the run.

// briefPlan is a seed's draws for a brief run, on top of all others.
type briefPlan struct {
	acts []act
	// rest is the time from the last act to the calm.
	rest time.Duration
	// topple is the chance of a new leader to lose power in its first write.
	topple float64
	// unheard is the chance of a leader to go silent after committing coded
	// entries, before anybody hears of the commit, and to fail.
	unheard float64
	// deaf is the chance of a commit of coded entries to be heard by all members
	// but one with the entries; this member then leads others after they cut the
	// entries from their logs.
	deaf float64
	// inStep says that all takes the same time, and keeps its order.
	inStep bool
	// overtaken says that later messages overtake a held message.
	overtaken bool
	// holds is the held work, by its number among all work that takes time,
	// where nothing else holds the work.
	holds map[int]time.Duration
	// hurry is how hosts check changes of the members.
	hurry hurryPlan
	// ambushes is what happens as nodes do certain things.
	ambushes []*ambush
	// blocked is the chance of a commit of coded entries to leave a follower with
	// the longest log, and unable to apply the log: see block.
	blocked float64
	// breaks is nil unless connections break.
	breaks *breaksPlan
}

// act is one event of a brief run.
type act struct {
	kind actKind
	// wait is the time since the act before.
	wait time.Duration
	// led says that the act waits, up to a bound, until somebody leads.
	led bool
	// skip says that the act is left out: the act was found not to matter.
	skip bool
}

// actKind is the kind of a thing that happens.
type actKind int

const (
	actPropose actKind = iota
	actUpset
	actRepair
	actCrash
	actCrashMany
	actDoom
	actBlackout
	actRestart
	actPartition
	actOneWay
	actIsolate
	actMend
	actPause
	actSlowDisk
	actTransfer
	actCampaign
	actForget
	actChange
	actReplace
	actCompact
	actDensify
	actUpgrade
	actKinds
	// actHurry stands in place of others, where hosts are in a hurry.
	actHurry
	// These happen in ambushes only.
	actSwap
	actStarve
	// These happen in joints only.
	actWish
	actLag
	actSplit
	actDeafen
	actStream
	actStranger
	actLate
	actJoin
)

var actNames = [...]string{"propose", "upset", "repair", "crash", "crash-many", "doom", "blackout", "restart", "partition", "one-way", "isolate", "mend",
	"pause", "slow-disk", "transfer", "campaign", "forget", "change", "replace", "compact", "densify", "upgrade", "", "hurry", "swap", "starve", "wish", "lag", "split", "deafen", "stream", "stranger", "late", "join"}

// String returns the kind's name.
func (k actKind) String() string { return actNames[k] }

// mostActs bounds the acts of a run.
const mostActs = 16

// hurriedShare is the share of runs whose hosts are in a hurry.
const hurriedShare = 0.2

// drawBrief makes a plan one of a brief run. Acts whose bit is set in skip do not
// happen.
func (p *plan) drawBrief(d world.Draws, skip uint64) {
	c := p.coded
	b := &briefPlan{inStep: d.Chance(0.5), overtaken: d.Chance(0.5), holds: map[int]time.Duration{}}
	c.brief = b
	p.drawBriefCluster(d)
	p.drawBriefTimes(d)

	var weights [actKinds]int
	weights[actPropose] = 1 + d.IntN(4)
	weights[actUpset] = world.Pick(d, 0, 4, 8, 8)
	weights[actRepair] = world.Pick(d, 0, 2, 4, 8)
	for k := actRepair + 1; k < actKinds; k++ {
		if d.Chance(0.3) {
			weights[k] = world.Pick(d, 1, 1, 2, 4)
		}
	}
	if d.Chance(0.7) {
		weights[actDensify], weights[actUpgrade] = 0, 0
	}
	if weights[actChange]+weights[actReplace] > 0 {
		p.spares = max(p.spares, 1)
		p.preVote = true // see drawFaults
	}
	longest := world.Pick(d, 2*time.Millisecond, 20*time.Millisecond, 150*time.Millisecond)
	b.acts = append(b.acts, act{kind: actCampaign})
	for range int(d.Scale(3, mostActs)) {
		b.acts = append(b.acts, act{kind: drawKind(d, weights), wait: d.Span(10*time.Microsecond, longest), led: d.Chance(0.6)})
	}
	for i := range b.acts {
		if a := &b.acts[i]; i > 0 && b.acts[i-1].kind == actRepair || i == 1 {
			a.led = true
			a.wait += time.Duration(3*p.heartbeatTick) * tickTime // a leader sees the present members
		}
	}
	b.rest = world.Pick(d, 0, time.Millisecond, 30*time.Millisecond, 2*electionTime)
	p.duration = time.Minute // until the last act says more
	for i := range b.acts {
		b.acts[i].skip = skip>>i&1 == 1
	}
	b.topple, b.unheard = world.Pick(d, 0, 0, 0.3, 0.8), world.Pick(d, 0, 0.3, 0.8)
	p.oneByOne = p.oneByOne || d.Chance(0.4)
	if d.Chance(hurriedShare) {
		p.drawHurry(d)
	}
	p.drawBriefBias(d)
}

// drawBriefBias makes likely in some runs what takes several draws together.
func (p *plan) drawBriefBias(d world.Draws) {
	c := p.coded
	b := c.brief
	if d.Chance(0.15) { // the winner has committed entries to restore, and a torn write
		b.unheard, b.topple, c.falls.pushLoss = 0.8, 0.8, 1
		p.oneByOne, p.forgetful, p.killOnly = true, false, false
	}
	if d.Chance(0.15) {
		b.deaf, p.trailing = 0.3, 0
	}
}

// drawKind draws a kind by its weight.
func drawKind(d world.Draws, weights [actKinds]int) actKind {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.IntN(sum)
	for k, w := range weights {
		if n -= w; n < 0 {
			return actKind(k)
		}
	}
	return actPropose
}

// drawBriefCluster draws a small cluster, whose logs are cut soon.
func (p *plan) drawBriefCluster(d world.Draws) {
	c := p.coded
	p.voters = world.Pick(d, 3, 3, 3, 4, 4, 5, 5)
	p.spares = world.Pick(d, 0, 1, 2)
	p.prepared = true
	p.padding = world.Pick(d, 60, 300, 1500)
	if c.memory > 0 {
		c.memory = 10_000 + world.Pick(d, 2, 10)*p.padding
	}
	p.clients = d.Between(0, 2)
	p.maxSizePerMsg = world.Pick[uint64](d, 0, 1024, math.MaxUint64, math.MaxUint64, math.MaxUint64)
	if p.maxInflightBytes > 0 {
		p.maxInflightBytes = max(p.maxInflightBytes, p.maxSizePerMsg)
	}
	p.thinkTime = d.Span(2*time.Millisecond, 50*time.Millisecond)
	p.checkpointEvery = world.Pick[uint64](d, 1, 3, 1000)
	p.trailing = world.Pick[uint64](d, 0, 0, 1, 3)
}

// drawBriefTimes takes out all that happens once in a while, and draws how long
// things take.
func (p *plan) drawBriefTimes(d world.Draws) {
	c, b := p.coded, p.coded.brief
	p.crash, p.partition, p.oneWay, p.isolate, p.pause, p.slowDsk = 0, 0, 0, 0, 0, 0
	p.membership, p.transfer, p.campaign, p.forget, p.burst = 0, 0, 0, 0, 0
	c.upgrade, c.dense, c.replace, c.blackout = 0, 0, 0, 0
	c.falls = &fallsPlan{
		pushLoss: world.Pick(d, 0, 0.5, 0.9, 1, 1),
		hush:     world.Pick(d, 0, 0.3, 0.6, 1),
		company:  world.Pick(d, 0, 0, 0.2, 0.5),
	}
	if (c.policy == policyFull || c.level == 1) && d.Chance(0.7) {
		c.policy, c.level = policyFixed, d.Between(2, 3)
	}
	few := uint(d.Uint32())
	c.late &= few & uint(d.Uint32()) // few seeds, and few nodes
	if d.Chance(0.7) {
		c.late = 0
	}
	c.threshold = min(c.threshold, 64)
	p.links.Rate = 0
	p.checkQuorum = p.checkQuorum && d.Chance(0.3)
	p.outage = d.Span(20*time.Millisecond, 600*time.Millisecond)
	// A run has few messages and writes, so each fault is frequent.
	p.links.Loss, p.links.Duplicate, p.links.Reorder = d.Rate(0.3, 0.01, 0.3), d.Rate(0.3, 0.02, 0.4), d.Rate(0.3, 0.02, 0.4)
	p.crashWrite = d.Rate(0.2, 0.02, 0.2)
	c.unitLoss, c.unitCorrupt, c.unitLies = d.Rate(0.3, 0.1, 0.9), d.Rate(0.3, 0.1, 0.7), d.Rate(0.3, 0.1, 0.8)
	c.reportLoss = d.Rate(0.2, 0.05, 0.7)
	p.links.Least, p.syncMin = d.Span(50*time.Microsecond, 2*time.Millisecond), d.Span(20*time.Microsecond, 2*time.Millisecond)
	p.links.Most = p.links.Least + d.Span(50*time.Microsecond, 5*time.Millisecond)
	p.syncMax = p.syncMin + d.Span(50*time.Microsecond, 5*time.Millisecond)
	if !b.inStep {
		return
	}
	p.links.Most, p.syncMax, p.applyMax = p.links.Least, p.syncMin, 0
	p.links.Reorder, p.drift = 0, 0
	within := int(d.Scale(30, 600))
	for range d.Between(1, 5) {
		b.holds[d.IntN(within)] = d.Span(p.links.Least, 200*time.Millisecond)
	}
}

// String lists the acts that happen, each with its number.
func (b *briefPlan) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "{topple: %v, unheard: %v, deaf: %v, blocked: %v, breaks: %v, hurry: %v, in step: %v, overtaken: %v, held: %v;", b.topple, b.unheard, b.deaf, b.blocked, b.breaks, b.hurry, b.inStep, b.overtaken, b.holds)
	for i, a := range b.acts {
		if !a.skip {
			fmt.Fprintf(&text, " %d %v;", i, a.kind)
		}
	}
	for i, a := range b.ambushes {
		if !a.skip {
			fmt.Fprintf(&text, " %d %v;", mostActs+1+i, a)
		}
	}
	return text.String() + "}"
}

// has reports whether there are acts of these kinds.
func (b *briefPlan) has(kinds ...actKind) bool {
	return b != nil && slices.ContainsFunc(b.acts, func(a act) bool { return slices.Contains(kinds, a.kind) })
}

// hurry is how hosts check changes of the members.
type hurry int

const (
	hurryNot     hurry = iota // the core checks
	hurryKnows                // the host knows the changes before
	hurryRefuses              // the host decides at last when a change is applied
)

// hurryPlan is a seed's draws about hurry, for a brief run.
type hurryPlan struct {
	kind hurry
	// lag is the chance that a node applies committed entries late, by up to lagMost.
	lag     float64
	lagMost time.Duration
}

// drawHurry draws hosts in a hurry. All nodes code, because nodes without coding are
// safe only if each change of members waits for the one before.
func (p *plan) drawHurry(d world.Draws) {
	b := p.coded.brief
	b.hurry = hurryPlan{kind: world.Pick(d, hurryKnows, hurryKnows, hurryRefuses), lag: world.Pick(d, 0, 0.2, 0.7), lagMost: d.Span(time.Millisecond, 300*time.Millisecond)}
	p.coded.late = 0
	p.spares = min(max(p.spares, d.Between(1, 3)), maxNodes-p.voters)
	p.preVote = true // see drawFaults
	p.async = p.async || d.Chance(0.5)
	share := d.Scale(0.2, 0.6)
	for i := range b.acts {
		switch a := &b.acts[i]; {
		case i == 0:
		case a.kind == actDensify, a.kind == actUpgrade, a.kind == actChange, a.kind == actReplace, d.Chance(share):
			a.kind, a.led = actHurry, true
		}
	}
}

// breaksPlan is a seed's draws about connections and snapshots, for a brief
// run.
//
// A break loses all messages under way on the connection, in both directions, and both
// ends hear of the break. A break does most harm to an acknowledgement: the leader then
// goes back to its knowledge before, and the follower has more. The calm ends neither
// kind of fault, so both kinds go on for a while in the calm.
type breaksPlan struct {
	// chance is that of an acknowledgement to be lost with its connection, until so
	// long after the calm began.
	chance float64
	calm   time.Duration
	// snapshot is a host's time for a snapshot asked for; busy says that the host
	// has no snapshot until then, not even the one before.
	snapshot time.Duration
	busy     bool
	// strand is the chance of a commit of coded entries to leave a member that has them
	// without units, and with no more than a majority alive: see strand.
	strand float64
	draws  world.Draws
}

// drawBreaks adds connections that break, and slow snapshots, to a brief run, in a
// stream of its own. Two thirds of the runs get none of it.
func (p *plan) drawBreaks(d world.Draws) {
	if !d.Chance(0.33) {
		return
	}
	p.coded.brief.breaks = &breaksPlan{
		chance: d.Scale(0.02, 0.5), calm: world.Pick(d, 0, d.Span(electionTime, 10*electionTime)),
		snapshot: world.Pick(d, 0, d.Span(10*time.Millisecond, 5*electionTime)), busy: d.Chance(0.5), draws: d,
	}
	if d.Chance(0.5) {
		p.drawStrand(d)
	}
}

// drawStrand has a member be left behind, and little else happen but proposals.
func (p *plan) drawStrand(d world.Draws) {
	c := p.coded
	b := c.brief
	b.breaks.strand = world.Pick(d, 0.2, 1)
	b.breaks.chance = d.Scale(0.1, 0.6)
	b.breaks.calm = d.Span(electionTime, 20*electionTime)
	b.breaks.snapshot = d.Span(10*time.Millisecond, 5*electionTime)
	c.dead, p.trailing, c.late = 1, 0, 0
	c.policy, c.level, c.threshold = policyFixed, d.Between(2, 3), 1
	b.acts = b.acts[:1]
	for range d.Between(1, 8) {
		b.acts = append(b.acts, act{kind: actPropose, wait: d.Span(time.Millisecond, 2*electionTime), led: true})
	}
	b.topple, b.unheard, b.deaf, b.blocked = 0, 0, 0, 0
}

// String says how likely connections break.
func (b *breaksPlan) String() string {
	if b == nil {
		return "never"
	}
	return fmt.Sprintf("%.2f until %v after the calm, snapshots in %v, busy %v, strand %v", b.chance, b.calm, b.snapshot, b.busy, b.strand)
}

// lasting is for how long connections break in the calm.
func (b *breaksPlan) lasting() time.Duration {
	if b == nil {
		return 0
	}
	return b.calm
}
