// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"math"
	"time"

	"github.com/weftraft/weft/internal/world"
)

// plan is what a seed drew before the run: the cluster, its configuration, and
// which faults there are and how strong. Most plans lack most faults: a run
// with everything at once would end few elections, and hide what only shows
// when things nearly work.
type plan struct {
	duration time.Duration

	// The cluster.
	voters   int  // founding voters: 1 to voters
	spares   int  // ids for later members
	prepared bool // founded from a common snapshot, not by Bootstrap
	async    bool // Config.AsyncStorageWrites
	lease    bool // Config.ReadOnlyOption is ReadOnlyLeaseBased

	// The configuration.
	heartbeatTick             int
	preVote, checkQuorum      bool
	maxSizePerMsg             uint64
	maxCommittedSizePerReady  uint64
	maxUncommittedEntriesSize uint64
	maxInflightMsgs           int
	maxInflightBytes          uint64
	noForwarding              bool
	stepDownOnRemoval         bool
	yields                    bool           // Config.YieldWhenLate
	weights                   map[uint64]int // Config.Placement, unless nil
	pace                      float64        // chance that Config.Pace holds a member back,
	paceMost                  time.Duration  // for up to this long

	// The hosts.
	checkpointEvery uint64 // entries applied between checkpoints
	trailing        uint64 // entries kept behind a checkpoint
	oneByOne        bool   // hosts write record by record, so writes can be torn
	groupCommit     bool   // one sync for all waiting writes
	bold            bool   // the operator removes as many voters as will go
	catchUp         int    // ticks made up for after a pause
	sendsFirst      bool   // a leader's host without storage threads sends while it writes
	padding         int    // most bytes of padding in a command

	// Time.
	drift      float64 // clocks run fast or slow by up to this much
	syncMin    time.Duration
	syncMax    time.Duration
	applyMax   time.Duration
	links      world.Traits
	thinkTime  time.Duration
	clients    int
	keys       int
	forgetful  bool    // crashes of a machine lose all that was not synced
	killOnly   bool    // crashes are of processes: the written stays
	silent     float64 // chance that a message is lost without a report
	busySnap   float64 // chance that a snapshot must be made first
	crashWrite float64 // chance that a write is hit by a crash

	// Faults: mean times between.
	crash, partition, oneWay, isolate, pause, slowDsk time.Duration
	membership, transfer, campaign, forget, burst     time.Duration
	hungDsk, slowMach, slowLink, holdLink             time.Duration
	outage                                            time.Duration // most a fault lasts

	// coded is the draws about coding; nil: coding is off.
	coded *codedPlan
	// leased is what is drawn about leases; nil: there are none.
	leased *leasedPlan
	// earlySize is Config.MaxEarlyApplySize, and fallWhenEarly the chance that a machine loses
	// power after it applied what its disk lacks.
	earlySize     uint64
	fallWhenEarly float64
	// joints is what is drawn about joints; nil: the run is none of these.
	joints *jointsPlan
}

// The time scale: a tick of an undisturbed clock, and the ticks of the least
// election timeout.
const (
	tickTime      = 10 * time.Millisecond
	electionTicks = 10
	electionTime  = electionTicks * tickTime
	maxNodes      = 7
)

func drawPlan(d world.Draws) plan {
	p := plan{duration: 6 * time.Second}
	p.drawCluster(d)
	p.drawConfig(d)
	p.drawHosts(d)
	p.drawTimes(d)
	p.drawFaults(d)
	if p.lease {
		p.soften()
	}
	return p
}

func (p *plan) drawCluster(d world.Draws) {
	p.voters = world.Pick(d, 1, 2, 3, 3, 3, 3, 4, 5, 5, 5)
	p.spares = min(d.IntN(4), maxNodes-p.voters)
	p.prepared = d.Chance(0.5)
	p.async = d.Chance(0.5)
	p.lease = d.Chance(0.06)
}

func (p *plan) drawConfig(d world.Draws) {
	p.heartbeatTick = d.Between(1, 3)
	p.preVote = d.Chance(0.5)
	p.checkQuorum = d.Chance(0.5) || p.lease
	p.maxSizePerMsg = world.Pick[uint64](d, 0, 64, 1024, math.MaxUint64, math.MaxUint64)
	p.maxCommittedSizePerReady = world.Pick[uint64](d, 1, 200, 4096, math.MaxUint64)
	p.maxUncommittedEntriesSize = world.Pick[uint64](d, 0, 0, 0, 300)
	p.maxInflightMsgs = world.Pick(d, 1, 2, 8, 256)
	if p.maxSizePerMsg <= 1024 && d.Chance(0.3) {
		p.maxInflightBytes = p.maxSizePerMsg + uint64(d.IntN(2000))
	}
	p.noForwarding = d.Chance(0.15)
	p.stepDownOnRemoval = d.Chance(0.5)
}

func (p *plan) drawHosts(d world.Draws) {
	p.checkpointEvery = world.Pick[uint64](d, 3, 10, 40, 1000)
	p.trailing = world.Pick[uint64](d, 0, 0, 2, 10)
	p.oneByOne = d.Chance(0.4)
	p.groupCommit = d.Chance(0.5)
	p.bold = d.Chance(0.2)
	p.catchUp = world.Pick(d, 0, 1, 3, 15)
	p.padding = world.Pick(d, 0, 0, 50, 1000)
	p.clients = d.Between(2, 5)
	p.keys = d.Between(2, 5)
	p.thinkTime = d.Span(10*time.Millisecond, 200*time.Millisecond)
	p.forgetful = d.Chance(0.2)
	p.killOnly = !p.forgetful && d.Chance(0.1)
	p.silent = world.Pick(d, 0, 0.5, 1)
	p.busySnap = world.Pick(d, 0, 0, 0.5)
}

func (p *plan) drawTimes(d world.Draws) {
	if d.Chance(0.6) {
		p.drift = d.Scale(0.001, 0.3)
	}
	p.syncMin = d.Span(10*time.Microsecond, 2*time.Millisecond)
	p.syncMax = p.syncMin + d.Span(100*time.Microsecond, 20*time.Millisecond)
	p.applyMax = d.Span(10*time.Microsecond, 10*time.Millisecond)
	p.links.Least = d.Span(50*time.Microsecond, 10*time.Millisecond)
	p.links.Most = p.links.Least + d.Span(50*time.Microsecond, 20*time.Millisecond)
	if d.Chance(0.3) {
		p.links.Rate = d.Scale(50e3, 10e6)
	}
}

// drawFaults draws which faults there are: each is absent from about half of
// the runs, and where it is, anything between rare and relentless.
func (p *plan) drawFaults(d world.Draws) {
	rate, every := d.Rate, d.Every
	p.links.Loss = rate(0.5, 0.001, 0.2)
	p.links.Duplicate = rate(0.4, 0.001, 0.2)
	p.links.Reorder = rate(0.4, 0.001, 0.3)
	p.crash = every(0.6, 300*time.Millisecond, 5*time.Second)
	p.crashWrite = rate(0.35, 0.002, 0.05)
	p.partition = every(0.4, 300*time.Millisecond, 4*time.Second)
	p.oneWay = every(0.3, 200*time.Millisecond, 4*time.Second)
	p.isolate = every(0.4, 300*time.Millisecond, 4*time.Second)
	p.pause = every(0.4, 200*time.Millisecond, 4*time.Second)
	p.slowDsk = every(0.3, 200*time.Millisecond, 4*time.Second)
	p.membership = every(0.6, 50*time.Millisecond, 2*time.Second)
	p.transfer = every(0.3, 100*time.Millisecond, 3*time.Second)
	p.campaign = every(0.2, 100*time.Millisecond, 3*time.Second)
	p.forget = every(0.2, 100*time.Millisecond, 3*time.Second)
	// Where members change, a removed node unaware of its removal may campaign
	// without end, and spread its terms to nodes that are behind and may not
	// campaign yet. The latter ignore nodes of a lower term, and no message
	// raises the term of the possible leaders. CheckQuorum does not help while
	// there is no leader.
	p.preVote = p.preVote || p.membership > 0
	p.burst = every(0.4, 50*time.Millisecond, 2*time.Second)
	p.outage = d.Span(100*time.Millisecond, 3*time.Second)
}

// drawMachines draws the faults that report no error, for most of the runs: some do
// without, and so make way for more. Brief runs have few faults, of their own, and lease-based
// reads stand none of these.
func (p *plan) drawMachines(d world.Draws, opts options) {
	p.links.Slower, p.links.SlowRate = 10, 100e3
	if p.lease || opts.Brief || opts.Bare || !d.Chance(0.75) {
		return
	}
	every := func() time.Duration { return d.Every(0.5, 200*time.Millisecond, 4*time.Second) }
	p.hungDsk, p.slowMach, p.slowLink, p.holdLink = every(), every(), every(), every()
	p.links.Late, p.links.Echo = d.Rate(0.3, 0.001, 0.02), d.Rate(0.3, 0.01, 0.3)
	if d.Chance(0.3) {
		p.links.Frames = d.Between(4, 64)
	}
	if p.slowDsk == 0 {
		p.slowDsk = every()
	}
}

// drawPreferences draws which members are to lead, and whether those with slow disks are not. Brief runs have a bound for
// the time without a leader, and lease-based reads stand no transfers.
func (p *plan) drawPreferences(d world.Draws, opts options) {
	if p.lease || opts.Brief || opts.Bare {
		return
	}
	p.yields = d.Chance(0.3)
	if p.checkQuorum && d.Chance(0.3) {
		p.weights = map[uint64]int{}
		for id := range uint64(maxNodes) {
			p.weights[1+id] = world.Pick(d, 0, 50, 100, 1000)
		}
	}
}

// drawPace draws whether hosts hold back what leaders send to members, in a third of the runs.
func (p *plan) drawPace(d world.Draws) {
	p.pace, p.paceMost = d.Rate(0.3, 0.01, 0.5), d.Span(5*time.Millisecond, 5*electionTime)
}

// soften leaves a plan with faults under which lease-based reads are
// linearizable. A lease of this kind ends when the leader checks for messages
// of a quorum, once in an election timeout, and a follower after a restart, or
// told to campaign, knows of no lease: so stops of nodes, or of links, are out
// of bounds. See raft.ReadOnlyLeaseBased.
func (p *plan) soften() {
	p.drift = min(p.drift, 0.02)
	p.links.Loss = min(p.links.Loss, 0.01)
	p.crash, p.crashWrite = 0, 0
	p.partition, p.oneWay, p.isolate, p.pause, p.slowDsk = 0, 0, 0, 0, 0
	p.membership, p.transfer, p.campaign, p.forget = 0, 0, 0, 0
	p.links.Most = min(p.links.Most, 10*time.Millisecond)
	p.links.Least = min(p.links.Least, p.links.Most)
	p.links.Rate = 0
}

func (p *plan) String() string {
	if j := p.joints; j != nil {
		bare := *p
		bare.joints = nil
		return fmt.Sprintf("%s joints:%v", bare.String(), j)
	}
	if l := p.leased; l != nil {
		bare, leased := *p, *l
		tuner := leased.cfg.Tuner
		bare.leased, leased.tuning, leased.clocks, leased.cfg.Tuner = nil, world.Draws{}, world.Draws{}, nil // pointers would be printed
		return fmt.Sprintf("%s leased:%+v tuner:%+v", bare.String(), leased, tuner)
	}
	if p.coded == nil {
		return fmt.Sprintf("%+v", *p)
	}
	bare, coded := *p, *p.coded
	bare.coded, coded.falls, coded.brief = nil, nil, nil
	text := fmt.Sprintf("%+v coded:%+v", bare, coded)
	if f := p.coded.falls; f != nil {
		text += fmt.Sprintf(" falls:%+v", *f)
	}
	if b := p.coded.brief; b != nil {
		text += " brief:" + b.String()
	}
	return text
}

// drawEarly draws the bound, and bad luck of the kind that matters.
func (p *plan) drawEarly(d world.Draws) {
	p.async = true
	p.earlySize = world.Pick[uint64](d, 1, 60, 200, 2000, 1<<40)
	p.fallWhenEarly = world.Pick(d, 0, 0.01, 0.05)
	p.slowDsk = d.Span(100*time.Millisecond, time.Second)
	p.killOnly = false
}

// timeOf rounds a number of nanoseconds.
func timeOf(ns float64) time.Duration { return time.Duration(ns) }
