// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"testing"
	"time"

	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// TestPlantedBugs shows that the simulator finds what it should: each mistake
// within a number of seeds.
func TestPlantedBugs(t *testing.T) {
	for _, tt := range []struct {
		bug    bug
		within uint64
		tune   func(*plan) // for what needs a coincidence: where to look
	}{
		{termIgnored, 800, lateProposals},
		{lostOrigins, 300, nil},
		{lostSessions, 100, nil},
		{noSessions, 100, nil},
		{followerBarrier, 100, nil},
		{noWait, 300, nil},
		{noFsync, 100, nil},
		{earlyAck, 100, nil},
		{ownEarly, 100, disksHang},
		{noQueueBudget, 300, nil},
		{noInboxBudget, 300, narrow},
		{noLinkBudget, 300, narrow},
		{applyAgain, 300, nil},
		{newerBody, 100, nil},
		{refusedLate, 100, nil},
		{wildClocks, 100, readersCutOff},
		{clockOfTicks, 100, readersCutOff},
		{tickedReads, 100, readersCutOff},
		{latePermit, 100, readersCutOff},
		{cutLog, 300, nil},
		{earlyUnbounded, 100, nil},
		{stateAhead, 300, nil},
	} {
		t.Run(tt.bug.String(), func(t *testing.T) {
			seeds.Hunt(t, 1, tt.within, func(seed uint64) result { return run(seed, options{Bug: tt.bug, tune: tt.tune}) })
		})
	}
}

// disksHang makes a plan of five members that code and go on, on disks that are fast and sometimes
// hang: whatever is durable, nothing is lost.
func disksHang(p *plan) {
	p.voters, p.coding = 5, coding{on: true, threshold: 1, level: 3}
	p.costs.Sync, p.costs.DiskKiB, p.costs.Delay = 20*time.Microsecond, time.Microsecond, 5*time.Millisecond
	p.crash, p.kill, p.tornWrite, p.fullDisk, p.damage, p.members, p.fallWhenFull = 0, 0, 0, 0, 0, 0, 0
	p.slowDisk, p.hungDisk = 0, 100*time.Millisecond
}

// lateProposals makes a plan in which proposals come late: connections are held
// up, leaders come and go, and callers are impatient.
func lateProposals(p *plan) {
	p.voters, p.groups, p.clients, p.largest, p.flood = 3, 1, 8, 17, 0
	p.costs.Delay, p.costs.Sync = 200*time.Microsecond, 200*time.Microsecond
	p.deadline, p.think, p.outage = 40*time.Millisecond, 2*time.Millisecond, 150*time.Millisecond
	p.holdLink, p.transfer, p.isolate, p.campaign = 5*time.Millisecond, 15*time.Millisecond, 100*time.Millisecond, 0
	p.crash, p.kill, p.tornWrite, p.members, p.fullDisk, p.partition = 0, 0, 0, 0, 0, 0
	p.repeats, p.leasing, p.placing = repeats{}, leasing{}, placing{} // promises and weights would keep leaders in office
}

// readersCutOff makes a plan in which every node answers reads by its leases, and nodes are
// often cut off, or stand still, while the others go on.
func readersCutOff(p *plan) {
	p.voters, p.groups, p.clients, p.largest, p.flood = 3, 1, 8, 17, 0
	p.costs.Delay, p.costs.Sync = 200*time.Microsecond, 200*time.Microsecond
	p.deadline, p.think, p.outage = 60*time.Millisecond, 2*time.Millisecond, 400*time.Millisecond
	p.isolate, p.pause, p.drift = 100*time.Millisecond, 100*time.Millisecond, 0
	p.crash, p.kill, p.tornWrite, p.members, p.fullDisk, p.partition, p.campaign = 0, 0, 0, 0, 0, 0, 0
	p.noPreVote, p.noCheckQuorum, p.repeats = false, false, repeats{}
	p.leasing = leasing{on: true, lease: 300 * time.Millisecond, fail: 40 * time.Millisecond, driftPPM: 1000, probes: time.Millisecond}
}

// narrow makes a plan in which more is sent than links and inboxes take. Machines that
// stand still send less.
func narrow(p *plan) {
	p.linkBytes, p.receiveBytes, p.appendBytes, p.batchBytes = 64<<10, 4<<10, 4<<10, 16<<10
	p.largest, p.costs.LinkKiB, p.flood = 16<<10, 100*time.Microsecond, 20*time.Millisecond
	p.hungDisk, p.slowMachine, p.damage = 0, 0, 0
	p.queueBytes, p.calls, p.inflightMsgs, p.inflightBytes = 8<<20, 4096, 256, 4<<20
}
