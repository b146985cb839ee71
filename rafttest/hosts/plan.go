// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

const (
	tickTime      = 20 * time.Millisecond
	electionTicks = 10
	// runTime is how long faults last; calmTime bounds what comes after.
	runTime  = 4 * time.Second
	calmTime = 30 * time.Second
	// callTime is how long a client waits for an answer.
	callTime = 1200 * time.Millisecond
)

// plan is what a seed draws before a run begins.
type plan struct {
	founders int

	links   world.Traits
	syncMin time.Duration
	syncMax time.Duration
	// passMax is how long messages wait for each other.
	passMax time.Duration

	// The mean times between two faults of a kind; 0: none.
	crashEvery, killEvery, pauseEvery, cutEvery time.Duration
	breakEvery, transferEvery, churnEvery       time.Duration
	// The same for faults that report no error.
	hangEvery, slowDiskEvery, slowMachineEvery, slowLinkEvery, holdEvery time.Duration
	// rosterEvery is the same for wishes of other responders, where there are leases.
	rosterEvery time.Duration
	// tear is how often the power fails while several entries are written.
	tear float64

	// snapshotEvery is after how many entries the log is cut, keep how many of
	// them stay.
	snapshotEvery, keep uint64
	// quota bounds the bytes that a leader has proposed and members in touch
	// have not.
	quota int

	maxSizePerMsg, maxInflightBytes, maxUncommitted, maxApplying uint64
	maxInflightMsgs                                              int
	checkQuorum                                                  bool

	think time.Duration
	// idle is how long clients rest now and then.
	idle time.Duration
	// big is how often a payload is large.
	big float64
}

func drawPlan(d world.Draws) plan {
	p := plan{
		founders: world.Pick(d, 3, 3, 3, 4, 5, 5, 6, 7),
		links: world.Traits{
			Least:     100 * time.Microsecond,
			Most:      d.Span(200*time.Microsecond, 8*time.Millisecond),
			Loss:      d.Rate(0.5, 0.001, 0.1),
			Duplicate: d.Rate(0.5, 0.01, 0.2),
			Reorder:   d.Rate(0.5, 0.01, 0.2),
			Late:      d.Rate(0.5, 0.001, 0.02),
			Frames:    d.Between(16, 128),
		},
		syncMin:       50 * time.Microsecond,
		syncMax:       d.Span(100*time.Microsecond, 20*time.Millisecond),
		passMax:       d.Span(10*time.Microsecond, 4*time.Millisecond),
		tear:          d.Rate(0.5, 0.003, 0.1),
		crashEvery:    d.Every(0.6, 300*time.Millisecond, 3*time.Second),
		killEvery:     d.Every(0.4, 300*time.Millisecond, 3*time.Second),
		pauseEvery:    d.Every(0.5, 400*time.Millisecond, 3*time.Second),
		cutEvery:      d.Every(0.5, 300*time.Millisecond, 3*time.Second),
		breakEvery:    d.Every(0.7, 50*time.Millisecond, time.Second),
		transferEvery: d.Every(0.5, 300*time.Millisecond, 3*time.Second),
		churnEvery:    d.Every(0.5, 300*time.Millisecond, 2*time.Second),
		snapshotEvery: uint64(d.Between(10, 150)),
		keep:          uint64(d.Between(0, 40)),
		quota:         d.Between(64<<10, 512<<10),

		maxSizePerMsg:   world.Pick(d, uint64(0), 4<<10, 128<<10, 1<<20),
		maxUncommitted:  world.Pick(d, uint64(0), 256<<10, 1<<20),
		maxApplying:     world.Pick(d, uint64(1), 64<<10, 1<<20),
		maxInflightMsgs: d.Between(4, 64),
		checkQuorum:     d.Chance(0.7),
		think:           d.Span(2*time.Millisecond, 30*time.Millisecond),
		big:             d.Rate(0.8, 0.02, 0.3),
	}
	if d.Chance(0.3) {
		p.idle = d.Span(100*time.Millisecond, time.Second)
	}
	p.rosterEvery = 400 * time.Millisecond
	if d.Chance(0.5) {
		p.maxInflightBytes = p.maxSizePerMsg + 256<<10
	}
	return p
}

// drawMachines draws the faults that report no error, for a quarter of the runs: the
// others make way for more.
func (p *plan) drawMachines(d world.Draws) {
	p.links.Slower, p.links.SlowRate = 10, 1e6
	if !d.Chance(0.25) {
		return
	}
	p.links.Echo = d.Rate(0.5, 0.01, 0.3)
	every := func() time.Duration { return d.Every(0.5, 300*time.Millisecond, 3*time.Second) }
	p.hangEvery, p.slowDiskEvery, p.slowMachineEvery, p.slowLinkEvery, p.holdEvery = every(), every(), every(), every(), every()
}

// rush is what a seed draws of changes at once.
type rush struct {
	// every is the mean time between two moments; 0: changes come one after the other.
	every time.Duration
	// reportsFirst is set where an etcd-like leader reports a change before it applies the
	// change, as etcd's does.
	reportsFirst bool
	// whole is set where power tears no write. Without coding, no log whose commit index is
	// lost may have two changes.
	whole bool
	draws world.Draws
}

func drawRush(d world.Draws, opts options) (r rush) {
	if !opts.Rush {
		return rush{}
	}
	return rush{
		every: d.Span(100*time.Millisecond, 500*time.Millisecond), reportsFirst: d.Chance(0.5),
		whole: !opts.Library.Coded, draws: d,
	}
}
