// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/rawnode/session"
)

// The time scale: a tick of an undisturbed clock, and the least time without a
// leader before there is an election.
const (
	tickTime      = 10 * time.Millisecond
	electionTicks = 10
	electionTime  = electionTicks * tickTime
	maxNodes      = 9
)

// plan is what a seed draws before the run. Most plans lack most faults: where
// everything goes wrong at once, what only shows when little does stays hidden.
type plan struct {
	duration time.Duration
	voters   int // the first members of each group
	groups   int
	costs    Costs

	// Bounds of queues, and sizes.
	batchBytes, batches, queueBytes, calls                            int
	appendBytes, inflightMsgs, inflightBytes, uncommitted, applyBytes int
	receiveBytes, linkBytes, chunkBytes                               int
	segmentBytes, logBytes, logBatch, logCache                        int64
	retainEntries, retainBytes                                        uint64
	heartbeatTick                                                     int
	noPreVote, noCheckQuorum                                          bool
	keepEvery                                                         uint64 // entries between writes of the state
	sessions                                                          session.Limits

	// Clients.
	clients, keys     int
	think             time.Duration
	smallest, largest float64 // bytes of padding
	deadline          time.Duration
	flood             time.Duration // between bursts of unwaited commands

	// Faults: how often, how strong, how long.
	drift                                                              float64
	loss, silent, duplicate                                            float64
	crash, kill, tornWrite                                             time.Duration
	partition, isolate, oneWay, slowLink, holdLink, slowDisk, fullDisk time.Duration
	pause, members, transfer, campaign                                 time.Duration
	outage                                                             time.Duration // longest
}

func drawPlan(d draws, opts Options) plan {
	p := plan{duration: opts.Duration, costs: Measured}
	if p.duration == 0 {
		p.duration = 1200 * time.Millisecond
	}
	p.voters = pick(d, 1, 3, 3, 3, 3, 4, 5, 5)
	p.groups = pick(d, 1, 1, 2, 3)
	p.drawBounds(d)
	p.drawCosts(d)
	p.drawClients(d)
	p.drawFaults(d)
	if opts.tune != nil {
		opts.tune(&p)
	}
	p.fit()
	return p
}

func (p *plan) drawBounds(d draws) {
	p.batchBytes = pick(d, 1, 512, 16<<10, 256<<10)
	p.batches = pick(d, 1, 4, 64, 256)
	p.queueBytes = pick(d, 64<<10, 1<<20, 8<<20)
	p.calls = pick(d, 8, 64, 4096)
	p.appendBytes = pick(d, 1, 4<<10, 64<<10, 1<<20)
	p.inflightMsgs = pick(d, 2, 16, 256)
	p.inflightBytes = pick(d, 64<<10, 4<<20)
	p.uncommitted = pick(d, 32<<10, 1<<20, 16<<20)
	p.applyBytes = pick(d, 1, 16<<10, 1<<20)
	p.receiveBytes = pick(d, 1<<10, 64<<10, 1<<20, 8<<20)
	p.linkBytes = pick(d, 64<<10, 1<<20, 8<<20)
	p.chunkBytes = pick(d, 200, 4<<10, 64<<10)
	p.segmentBytes = pick[int64](d, 8<<10, 32<<10, 128<<10)
	p.logBytes = pick[int64](d, 64<<10, 1<<20, 16<<20)
	p.logBatch = pick[int64](d, 1<<10, 64<<10, 1<<20)
	p.logCache = pick[int64](d, -1, 16<<10, 1<<20)
	p.retainEntries = pick[uint64](d, 4, 30, 10_000)
	p.retainBytes = pick[uint64](d, 16<<10, 16<<20)
	p.heartbeatTick = pick(d, 1, 1, 2)
	p.noCheckQuorum = d.chance(0.2)
	p.keepEvery = pick[uint64](d, 5, 20, 200)
	p.sessions = session.Limits{Sessions: pick(d, 3, 1000, 1000), Results: pick(d, 1, 8), ResultBytes: 1 << 10}
}

func (p *plan) drawCosts(d draws) {
	c := &p.costs
	*c = c.scaled(d.scale(0.5, 20))
	c.Sync = d.span(20*time.Microsecond, 8*time.Millisecond)
	c.DiskKiB = d.span(time.Microsecond, 50*time.Microsecond) // 1 GB/s to 20 MB/s
	c.Delay = d.span(20*time.Microsecond, 10*time.Millisecond)
	c.LinkKiB = d.span(time.Microsecond, 50*time.Microsecond)
}

func (p *plan) drawClients(d draws) {
	p.clients = 2 + d.IntN(5)
	p.keys = 2 + d.IntN(storeKeys-1)
	p.think = d.span(3*time.Millisecond, 100*time.Millisecond)
	p.smallest = 16
	p.largest = pick[float64](d, 17, 17, 1<<10, 1<<10, 64<<10, 1<<20)
	p.deadline = d.span(100*time.Millisecond, 2*time.Second)
	if d.chance(0.3) {
		p.flood = d.span(30*time.Millisecond, time.Second)
	}
}

// drawFaults draws which faults there are: each is absent from about half of
// the runs, and where it is, anything between rare and relentless.
func (p *plan) drawFaults(d draws) {
	every := func(chance float64, lo, hi time.Duration) time.Duration {
		if !d.chance(chance) {
			return 0
		}
		return d.span(lo, hi)
	}
	rate := func(chance, lo, hi float64) float64 {
		if !d.chance(chance) {
			return 0
		}
		return d.scale(lo, hi)
	}
	if d.chance(0.6) {
		p.drift = d.scale(0.001, 0.3)
	}
	p.loss = rate(0.4, 0.0005, 0.05)
	p.silent = pick(d, 0, 0.5, 1)
	p.duplicate = rate(0.3, 0.001, 0.1)
	p.crash = every(0.5, 150*time.Millisecond, 2*time.Second)
	p.kill = every(0.3, 150*time.Millisecond, 2*time.Second)
	p.tornWrite = every(0.4, 150*time.Millisecond, 2*time.Second)
	p.partition = every(0.4, 150*time.Millisecond, 2*time.Second)
	p.isolate = every(0.4, 150*time.Millisecond, 2*time.Second)
	p.oneWay = every(0.3, 150*time.Millisecond, 2*time.Second)
	p.slowLink = every(0.3, 150*time.Millisecond, 2*time.Second)
	p.holdLink = every(0.4, 50*time.Millisecond, time.Second)
	p.slowDisk = every(0.3, 150*time.Millisecond, 2*time.Second)
	p.fullDisk = every(0.3, 150*time.Millisecond, 2*time.Second)
	p.pause = every(0.4, 150*time.Millisecond, 2*time.Second)
	p.members = every(0.5, 50*time.Millisecond, time.Second)
	p.transfer = every(0.4, 50*time.Millisecond, 2*time.Second)
	p.campaign = every(0.2, 100*time.Millisecond, 2*time.Second)
	// Who was removed and does not know it campaigns; only PreVote makes that
	// harmless to those who are behind.
	p.noPreVote = p.members == 0 && d.chance(0.2)
	p.outage = d.span(20*time.Millisecond, time.Second)
}

// fit makes the bounds large enough for what has to pass.
func (p *plan) fit() {
	command := commandBytes + int(p.largest) + 1
	p.queueBytes = max(p.queueBytes, p.maxCommand())
	p.inflightBytes = max(p.inflightBytes, p.appendBytes)
	if command > 100<<10 {
		// A few large commands say as much as many, and cost real time.
		p.think = max(p.think, 30*time.Millisecond)
		p.flood = 0
	}
}

func (p *plan) maxCommand() int { return commandBytes + int(p.largest) + 1 }

// calm makes links and disks work again.
func (p *plan) calm() {
	p.loss, p.duplicate = 0, 0
	p.costs.Sync = min(p.costs.Sync, time.Millisecond)
	p.costs.Delay = min(p.costs.Delay, time.Millisecond)
}

func (p *plan) String() string { return fmt.Sprintf("%+v", *p) }
