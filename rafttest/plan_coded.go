// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// codedPlan is a seed's draws about coding. Plans without coding have no
// codedPlan: their runs are as they were before coding existed.
type codedPlan struct {
	threshold int
	prefix    int // length of the clear prefix
	memory    int // bytes of the unit store; 0 is the default
	gap       int // gossip waits until it is so many bytes behind
	delay     int // and so many ticks
	policy    policyKind
	level     int     // of a fixed policy
	clock     bool    // nodes can tell the time between ticks
	poll      bool    // and the host calls when they want to be called
	veto      bool    // some payloads must not be coded
	lateSeal  bool    // hosts make each member's form of an entry
	stale     float64 // the wild policy's chance to assign too little

	// zones is over how many zones the nodes are spread; 0: there are none. strangers are bits of pairs of nodes of which
	// one does not know the other's zone.
	zones     uint64
	strangers uint64

	// late is the nodes beginning with coding off, by bit; the operator
	// restarts the nodes with coding on one after the other.
	late    uint
	upgrade time.Duration
	// dense is the mean time between wishes for a log without coded entries,
	// after which nodes run without coding for a while.
	dense time.Duration

	unitLoss, unitCorrupt, unitLies float64 // chances of a message with units
	// reportLoss is the chance of an acknowledgement to lose its Context, as on
	// a transport that carries Contexts only in part.
	reportLoss float64
	// impatient operators do not wait, between two changes of the members,
	// until all know durably of the first.
	impatient bool
	// replace is the mean time between changes of two or more voters at once.
	replace time.Duration
	// blackout is the mean time between losses of power at all nodes.
	blackout time.Duration
	// dead is the chance that as many nodes as may be dead are, in the end.
	dead float64
	// falls is nil unless runs are asked for in which leaders fall.
	falls *fallsPlan
	// brief is nil unless the run is a brief one.
	brief *briefPlan
}

// policyKind is how units are assigned.
type policyKind int

const (
	policyAdaptive policyKind = iota
	policyLevelled
	policyFull
	policyFixed
	policyWild
	policyTimed // in joints only
	policyKinds
)

// String returns the kind's name.
func (k policyKind) String() string {
	return [...]string{"adaptive", "levelled", "full", "fixed", "wild", "timed"}[k]
}

// drawCoded draws a plan with coding over a plan without. The draws have a
// stream of their own.
func (p *plan) drawCoded(d world.Draws) {
	c := &codedPlan{
		threshold: world.Pick(d, 1, 64, 64, 300),
		prefix:    world.Pick(d, 0, 0, 0, 4, 22),
		gap:       world.Pick(d, 0, 0, 2000, 20000),
		delay:     world.Pick(d, 0, 0, 1, 5),
		policy:    world.Pick(d, policyAdaptive, policyLevelled, policyFixed, policyFixed, policyWild, policyWild, policyFull),
		level:     d.Between(1, 5),
		clock:     d.Chance(0.6),
		veto:      d.Chance(0.2),
		impatient: d.Chance(0.5),
		dead:      world.Pick(d, 0, 0.5, 1),
	}
	c.poll = c.clock && d.Chance(0.7)
	c.stale = d.Rate(0.5, 0.01, 0.5)
	if d.Chance(0.25) {
		c.late = uint(d.IntN(1 << maxNodes))
		c.upgrade = d.Span(100*time.Millisecond, time.Second)
	}
	c.dense = d.Every(0.15, 300*time.Millisecond, 3*time.Second)
	c.unitLoss = d.Rate(0.4, 0.01, 0.6)
	c.unitCorrupt = d.Rate(0.4, 0.01, 0.5)
	c.replace = d.Every(0.4, 200*time.Millisecond, 2*time.Second)
	c.blackout = d.Every(0.25, time.Second, 4*time.Second)
	p.coded = c

	p.voters = world.Pick(d, 2, 3, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7)
	p.spares = min(d.IntN(4), maxNodes-p.voters)
	p.padding = world.Pick(d, 60, 300, 1500, 4000)
	c.memory = world.Pick(d, 0, 0, 10_000+2*p.padding, 10_000+10*p.padding)
	p.lease = false
	p.preVote = p.preVote || c.replace > 0
	if p.maxInflightBytes > 0 {
		p.maxInflightBytes += 8000
	}
	if p.maxUncommittedEntriesSize > 0 {
		p.maxUncommittedEntriesSize = uint64(p.padding)
	}
	p.duration = p.duration * 2 / 3
	c.unitLies = d.Rate(0.2, 0.01, 0.2)
	c.lateSeal = d.Chance(0.5)
	if c.zones = world.Pick[uint64](d, 0, 0, 1, 2, 3); d.Chance(0.3) {
		c.strangers = d.Uint64() & d.Uint64()
	}
}

// zone returns the zone of a node, as another knows it.
func (c *codedPlan) zone(self, id uint64) string {
	if self != id && c.strangers>>((7*self+id)%64)&1 == 1 {
		return ""
	}
	return string(rune('a' + id%c.zones))
}

// fallsPlan is a seed's draws about falls, on top of all others.
type fallsPlan struct {
	// mean is the time between falls.
	mean time.Duration
	// pushLoss is the chance of a push of units to get lost.
	pushLoss float64
	// hush is the chance of each link from a leader to go silent shortly before
	// it falls: some followers lack entries, and none may hear of a commit.
	hush float64
	// company is the chance of each other node to fall with it.
	company float64
}

func (p *plan) drawFalls(d world.Draws) {
	p.coded.falls = &fallsPlan{
		mean:     d.Span(20*time.Millisecond, 400*time.Millisecond),
		pushLoss: world.Pick(d, 0, 0.5, 0.9, 1),
		hush:     world.Pick(d, 0, 0.3, 0.6, 1),
		company:  world.Pick(d, 0, 0, 0.2, 0.5),
	}
	if p.coded.policy == policyFull || p.coded.level == 1 {
		p.coded.policy, p.coded.level = policyFixed, d.Between(2, 4)
	}
	p.coded.threshold = min(p.coded.threshold, 64)
}
