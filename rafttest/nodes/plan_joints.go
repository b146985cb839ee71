// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// This file is joints: runs with coding and leases in which changes of the members, crashes,
// snapshots and transfers follow each other closely, at nodes that apply late and tick
// unevenly, some with upstream's library; and faults lie in wait for the moments in which
// one of these is under way. Package rafttest has the same for cores.

// jointPlan is a seed's draws about joints.
type jointPlan struct {
	// lag is the chance of a step of the state machine to wait, for up to lagMost.
	lag     float64
	lagMost time.Duration
	// gap is after how many tick times, at most, a node's tick comes.
	gap [maxNodes + 1]int
	// upstream is the nodes with upstream's library, by bit.
	upstream uint
	// ambush is the chance of a fault at a moment.
	ambush float64
	draws  world.Draws
}

// drawJoints makes a plan one of joints, in a stream of its own.
func (p *plan) drawJoints(seed uint64) {
	d := world.NewDraws(seed, 7)
	p.joints = &jointPlan{lag: world.Pick(d, 0, 0.05, 0.3), lagMost: d.Span(10*time.Millisecond, 20*electionTime), ambush: d.Scale(0.01, 0.3), draws: world.NewDraws(seed, 8)}
	p.duration = p.duration * 2 / 3
	p.noPreVote, p.noCheckQuorum = false, false
	p.voters, p.groups = world.Pick(d, 3, 3, 4, 5), 1
	p.coding.on, p.coding.threshold, p.coding.level = true, 1, d.Between(2, 3)
	p.leasing = leasing{on: true, lease: world.Pick[time.Duration](d, 60, 100, 300) * time.Millisecond, fail: 50 * time.Millisecond, driftPPM: 1000,
		notes: d.Chance(0.5), spans: d.Chance(0.5), rosters: d.Span(30*time.Millisecond, 500*time.Millisecond), probes: d.Span(2*time.Millisecond, 30*time.Millisecond)}
	p.members, p.transfer = d.Span(20*time.Millisecond, 200*time.Millisecond), d.Every(0.6, 30*time.Millisecond, 300*time.Millisecond)
	p.retainEntries, p.retainBytes, p.keepEvery = 4, 16<<10, world.Pick[uint64](d, 1, 5, 200)
	p.fullDisk, p.largest = 0, 1<<10
	if d.Chance(0.4) {
		for id := range p.joints.gap {
			p.joints.gap[id] = world.Pick(d, 1, 1, 2, 4)
		}
	}
	if d.Chance(0.3) {
		some, others := uint(d.IntN(1<<maxNodes)), uint(d.IntN(1<<maxNodes))
		p.joints.upstream = some & others << 1
	}
}

// A change of members can stand in a log twice: a member proposes it, hears neither
// of the leader's verdict nor of the log, and asks again. All members leave out the
// second, also one whose state has passed both, with a snapshot that its core had no
// use for. To reach that takes several coincidences, which this fault arranges.
type repeats struct {
	every time.Duration // between two times at which a member is deaf
	// again has leaders append a change already applied, as leaders of earlier
	// versions did.
	again bool
	// uneven has every other node keep much of its log: a leader that needs a snapshot
	// to serve a member may be followed by a leader that needs none.
	uneven bool
}

func (p *plan) drawRepeats(d world.Draws) {
	r := &p.repeats
	if r.every = d.Every(0.5, 50*time.Millisecond, 250*time.Millisecond); r.every == 0 {
		return
	}
	r.again, r.uneven = d.Chance(0.8), d.Chance(0.8)
	if r.uneven {
		p.retainEntries, p.keepEvery = 4, 5
	}
}

// keepsMuch reports whether a node keeps much of its log.
func (r repeats) keepsMuch(node uint64) bool { return r.uneven && node%2 == 0 }
