// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
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
	costs    costs

	// Bounds of queues, and sizes.
	batchBytes, batches, queueBytes, calls                            int
	appendBytes, inflightMsgs, inflightBytes, uncommitted, applyBytes int
	receiveBytes, linkBytes, chunkBytes                               int
	segmentBytes, logBytes, logBatch, logCache                        int64
	retainEntries, retainBytes                                        uint64
	heartbeatTick                                                     int
	noPreVote, noCheckQuorum                                          bool
	keepEvery                                                         uint64 // entries between writes of the state
	earlyBytes                                                        int    // replica.Settings.MaxEarlyApplyBytes
	sessions                                                          session.Limits

	// Clients.
	clients, keys     int
	think             time.Duration
	smallest, largest float64 // bytes of padding
	deadline          time.Duration
	flood             time.Duration // between bursts of unwaited commands

	coding  coding
	leasing leasing
	repeats repeats
	pushing uint64 // bits of the nodes of an earlier version, which do not fetch snapshots
	placing placing
	// catchUp is the budget in which members catch up, at each node, 0: none; and catchUpFree what each gets beside it.
	catchUp, catchUpFree int64
	naming               naming
	joints               *jointPlan // nil: the run is none of joints
	gates                gatePlan
	setBack              bool // before each start, the clock by which processes number their starts is set back

	// Faults: how often, how strong, how long.
	drift                                                              float64
	links                                                              world.Traits
	silent                                                             float64 // chance that a loss is not noticed
	crash, kill, tornWrite                                             time.Duration
	partition, isolate, oneWay, slowLink, holdLink, slowDisk, fullDisk time.Duration
	pause, members, transfer, campaign                                 time.Duration
	hungDisk, damage, slowMachine                                      time.Duration
	outage                                                             time.Duration // longest
	// rewrites says that a full disk still takes writes to a file's own blocks,
	// as most file systems do. Others write each block to a new place.
	rewrites bool
	// fallWhenFull is how likely a leader loses power when another log stalls.
	fallWhenFull float64
	// fallWhenEarly is how likely a node loses power soon after it applies what its log lacks.
	fallWhenEarly float64
}

func drawPlan(seed uint64, opts options) plan {
	d := world.NewDraws(seed, 0)
	p := plan{duration: 1200 * time.Millisecond, costs: measured} // twelve election timeouts
	p.voters = world.Pick(d, 1, 3, 3, 3, 3, 4, 5, 5)
	p.groups = world.Pick(d, 1, 1, 2, 3)
	p.drawBounds(d)
	p.drawCosts(d)
	p.drawClients(d)
	p.drawFaults(d)
	p.coding = drawCoding(d)
	p.rewrites = d.Chance(0.7)
	p.fallWhenFull = world.Pick[float64](d, 0, 1, 1)
	p.drawRepeats(d)
	p.leasing = drawLeases(world.NewDraws(seed, 5), &p, opts)
	p.drawMachines(world.NewDraws(seed, 7))
	p.drawEarly(world.NewDraws(seed, 8))
	p.drawLinks(world.NewDraws(seed, 40))
	p.placing = drawPlacing(world.NewDraws(seed, 9))
	if opts.Bug == noBug { // other bugs are found where they are
		p.setBack = world.NewDraws(seed, 20).Chance(0.2)
		p.drawCatchUp(world.NewDraws(seed, 17))
		p.naming = drawNames(world.NewDraws(seed, 14))
		p.naming.drawZones(world.NewDraws(seed, 16))
		p.naming.drawReaders(world.NewDraws(seed, 19))
	}
	if opts.Joints {
		p.drawJoints(seed)
	}
	if d := world.NewDraws(seed, 11); d.Chance(0.25) {
		p.pushing = d.Uint64()
	}
	if opts.Gates {
		p.gates = drawGates(world.NewDraws(seed, 12))
		if opts.Brief {
			p.shorten(world.NewDraws(seed, 18))
		}
	}
	if opts.tune != nil {
		opts.tune(&p)
	}
	p.fit()
	return p
}

// start is the number that a process gives a start by its clock.
func (p *plan) start(life uint64) uint64 {
	if p.setBack {
		return 1<<10 - life
	}
	return life
}

// fetching returns which nodes fetch snapshots, as a node knows; nil at a node that does not.
func (p *plan) fetching(node uint64) func(peer uint64) bool {
	fetches := func(id uint64) bool { return p.pushing>>(id%64)&1 == 0 }
	if !fetches(node) {
		return nil
	}
	return fetches
}

func (p *plan) drawBounds(d world.Draws) {
	p.batchBytes = world.Pick(d, 1, 512, 16<<10, 256<<10)
	p.batches = world.Pick(d, 1, 4, 64, 256)
	p.queueBytes = world.Pick(d, 64<<10, 1<<20, 8<<20)
	p.calls = world.Pick(d, 8, 64, 4096)
	p.appendBytes = world.Pick(d, 1, 4<<10, 64<<10, 1<<20)
	p.inflightMsgs = world.Pick(d, 2, 16, 256)
	p.inflightBytes = world.Pick(d, 64<<10, 4<<20)
	p.uncommitted = world.Pick(d, 32<<10, 1<<20, 16<<20)
	p.applyBytes = world.Pick(d, 1, 16<<10, 1<<20)
	p.receiveBytes = world.Pick(d, 1<<10, 64<<10, 1<<20, 8<<20)
	p.linkBytes = world.Pick(d, 64<<10, 1<<20, 8<<20)
	p.chunkBytes = world.Pick(d, 200, 4<<10, 64<<10)
	p.segmentBytes = world.Pick[int64](d, 8<<10, 32<<10, 128<<10)
	p.logBytes = world.Pick[int64](d, 64<<10, 1<<20, 16<<20)
	p.logBatch = world.Pick[int64](d, 1<<10, 64<<10, 1<<20)
	p.logCache = world.Pick[int64](d, -1, 16<<10, 1<<20)
	p.retainEntries = world.Pick[uint64](d, 4, 30, 10_000)
	p.retainBytes = world.Pick[uint64](d, 16<<10, 16<<20)
	p.heartbeatTick = world.Pick(d, 1, 1, 2)
	p.noCheckQuorum = d.Chance(0.2)
	p.keepEvery = world.Pick[uint64](d, 5, 20, 200)
	p.sessions = session.Limits{Sessions: world.Pick(d, 3, 1000, 1000), Results: world.Pick(d, 1, 8), ResultBytes: 1 << 10}
}

func (p *plan) drawCosts(d world.Draws) {
	c := &p.costs
	*c = c.scaled(d.Scale(0.5, 20))
	c.Sync = d.Span(20*time.Microsecond, 8*time.Millisecond)
	c.DiskKiB = d.Span(time.Microsecond, 50*time.Microsecond) // 1 GB/s to 20 MB/s
	c.Delay = d.Span(20*time.Microsecond, 10*time.Millisecond)
	c.LinkKiB = d.Span(time.Microsecond, 50*time.Microsecond)
}

func (p *plan) drawClients(d world.Draws) {
	p.clients = 2 + d.IntN(5)
	p.keys = 2 + d.IntN(storeKeys-1)
	p.think = d.Span(3*time.Millisecond, 100*time.Millisecond)
	p.smallest = 16
	p.largest = world.Pick[float64](d, 17, 17, 1<<10, 1<<10, 64<<10, 1<<20)
	p.deadline = d.Span(100*time.Millisecond, 2*time.Second)
	if d.Chance(0.3) {
		p.flood = d.Span(30*time.Millisecond, time.Second)
	}
}

// drawFaults draws which faults there are: each is absent from about half of
// the runs, and where it is, anything between rare and relentless.
func (p *plan) drawFaults(d world.Draws) {
	rate, every := d.Rate, d.Every
	if d.Chance(0.6) {
		p.drift = d.Scale(0.001, 0.3)
	}
	p.links.Loss = rate(0.4, 0.0005, 0.05)
	p.silent = world.Pick(d, 0, 0.5, 1)
	p.links.Duplicate = rate(0.3, 0.001, 0.1)
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
	// A removed node unaware of its removal campaigns; only PreVote makes the
	// campaigns harmless to nodes that are behind.
	p.noPreVote = p.members == 0 && d.Chance(0.2)
	p.outage = d.Span(20*time.Millisecond, time.Second)
}

// drawMachines draws the faults of machines that report no error.
func (p *plan) drawMachines(d world.Draws) {
	p.hungDisk = d.Every(0.3, 150*time.Millisecond, 2*time.Second)
	p.slowMachine = d.Every(0.3, 150*time.Millisecond, 2*time.Second)
	p.damage = d.Every(0.3, 150*time.Millisecond, 2*time.Second)
}

// drawCatchUp draws a budget for catching up, often smaller than a window.
func (p *plan) drawCatchUp(d world.Draws) {
	if d.Chance(0.6) {
		p.catchUp, p.catchUpFree = world.Pick[int64](d, 1, 4<<10, 64<<10, 1<<20), world.Pick[int64](d, 1, 1<<10, 16<<10)
	}
}

// drawLinks draws what delays messages beside the network's load. Connections keep
// order, so a late message delays all behind it.
func (p *plan) drawLinks(d world.Draws) {
	p.links.Reorder, p.links.Late = d.Rate(0.2, 0.001, 0.05), d.Rate(0.1, 0.0003, 0.003)
	p.links.Echo = d.Rate(0.2, 0.001, 0.1)
	if d.Chance(0.2) {
		p.links.Frames = d.Between(4, 64)
	}
}

// fit makes the bounds large enough for what has to pass.
func (p *plan) fit() {
	command := commandBytes + int(p.largest) + 1
	p.queueBytes = max(p.queueBytes, p.maxCommand())
	p.inflightBytes = max(p.inflightBytes, p.appendBytes)
	p.fitLinks()
	if command > 100<<10 {
		// A few large commands say as much as many, and cost real time.
		p.think = max(p.think, 30*time.Millisecond)
		p.flood = 0
	}
}

// fitLinks gives the links the delay of the costs. A slow link is slower than a
// node's card.
func (p *plan) fitLinks() {
	p.links.Least, p.links.Most = p.costs.Delay, p.costs.Delay+p.costs.Delay/4
	p.links.Slower, p.links.SlowRate = 10, 1024/(20*p.costs.LinkKiB).Seconds()
}

func (p *plan) maxCommand() int { return commandBytes + int(p.largest) + 1 }

// calm makes links and disks work again.
func (p *plan) calm() {
	p.costs.Sync = min(p.costs.Sync, time.Millisecond)
	p.costs.Delay = min(p.costs.Delay, time.Millisecond)
	p.links = world.Traits{}
	p.fitLinks()
}

func (p *plan) String() string {
	text := fmt.Sprintf("%+v", *p)
	if p.joints != nil {
		text += fmt.Sprintf(" joints: %+v", *p.joints)
	}
	return text
}

// drawEarly draws how much may be applied early, in half of the runs nothing; and how likely power
// fails soon after.
func (p *plan) drawEarly(d world.Draws) {
	p.earlyBytes = world.Pick(d, -1, -1, -1, 200, 8<<10, 0)
	p.fallWhenEarly = world.Pick(d, 0, 0.01, 0.1)
}

func (p *plan) mostEarly() uint64 {
	if p.earlyBytes == 0 {
		return replica.DefaultEarlyBytes
	}
	return uint64(max(p.earlyBytes, 0))
}

// largestEntry bounds an entry's commands.
func (p *plan) largestEntry() int { return max(p.batchBytes, p.maxCommand()) }

// largestMessage bounds a message: entries up to a limit and one more, or the
// units asked for in one question, or a piece of a snapshot.
func (p *plan) largestMessage() int {
	entries := p.appendBytes
	if p.coding.on {
		entries = max(entries, gossip.AskBytes)
	}
	return entries + p.largestEntry() + max(p.chunkBytes, storeKeys*int(p.largest)/64) + 64<<10
}
