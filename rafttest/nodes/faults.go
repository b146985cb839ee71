// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// faults makes things go wrong in a world.
type faults struct{ *sim }

// begin plans the first of each kind of fault that the plan has.
func (f faults) begin() {
	p := &f.plan
	f.every(p.crash, func() { f.crash(true) })
	f.every(p.kill, func() { f.crash(false) })
	f.every(p.tornWrite, f.tearWrite)
	f.every(p.partition, f.partition)
	f.every(p.isolate, func() { f.isolate(f.anyNode(), f.outage()) })
	f.every(p.oneWay, f.oneWay)
	f.every(p.slowLink, f.slowLink)
	f.every(p.holdLink, f.holdLink)
	f.every(p.slowDisk, f.slowDisk)
	f.every(p.fullDisk, f.fillDisk)
	f.every(p.hungDisk, f.hangDisk)
	f.every(p.damage, f.damageLog)
	f.every(p.slowMachine, f.slowMachine)
	f.every(p.pause, f.pause)
	f.every(p.members, func() { f.changeMembers(f.anyGroup()) })
	f.every(p.repeats.every, func() { f.deafen(f.anyGroup()) })
	f.every(p.transfer, func() { f.transfer(f.anyGroup()) })
	f.every(p.campaign, f.campaign)
	f.every(p.coding.densify, func() { f.densify(f.anyGroup()) })
	f.every(p.leasing.rosters, func() { f.wishRoster(f.anyGroup()) })
	f.every(p.leasing.probes, func() { f.probe(f.anyGroup()) })
	f.every(p.flood, func() { f.burst(f.anyGroup(), 2+f.rng.IntN(20)) })
}

// every has something happen once in mean on average, until the calm.
func (f faults) every(mean time.Duration, happen func()) {
	if mean == 0 {
		return
	}
	f.After(f.rng.Wait(mean), func() {
		if !f.calming && f.failure == nil {
			happen()
			f.every(mean, happen)
		}
	})
}

// outage draws how long a fault lasts.
func (f faults) outage() time.Duration {
	return f.rng.Span(5*time.Millisecond, max(f.plan.outage, 6*time.Millisecond))
}

func (f faults) anyGroup() *group { return f.groups[f.rng.IntN(len(f.groups))] }

// anyNode returns a node that runs, often a leader; nil if none runs.
func (f faults) anyNode() *node {
	if m := f.anyGroup().leading(); m != nil && f.rng.Chance(0.4) {
		return m.n
	}
	up := f.running()
	if len(up) == 0 {
		return nil
	}
	return up[f.rng.IntN(len(up))]
}

func (f faults) crash(power bool) {
	n := f.anyNode()
	if n == nil {
		return
	}
	if power {
		f.reach.Crashes++
	} else {
		f.reach.Kills++
	}
	n.crash(power)
	f.After(f.outage(), n.start)
}

// tearWrite lets power fail at one of the next operations on the file system.
func (f faults) tearWrite() {
	if n := f.anyNode(); n != nil && !n.disk.Fused() {
		n.disk.Fuse(1 + f.rng.IntN(30))
	}
}

// torn ends a write of a disk in the middle: power has failed.
func (f faults) torn(n *node) {
	f.reach.TornWrites++
	n.crash(true)
	f.After(f.outage(), n.start)
}

func (f faults) partition() {
	side := 1 + f.rng.IntN(1<<maxNodes-2)
	mends := f.net.Split(uint64(side))
	f.reach.Partitions++
	f.tell(0, "partition %09b", side)
	f.mendLater("partition", f.outage(), mends)
}

// isolate cuts a node off from all others.
func (f faults) isolate(n *node, d time.Duration) {
	if n == nil {
		return
	}
	f.reach.Isolations++
	f.tell(n.id, "isolated")
	f.mendLater("isolation", d, f.net.Isolate(n.id, true, true))
}

func (f faults) oneWay() {
	from, to := f.anyNode(), f.anyNode()
	if from == nil || from == to {
		return
	}
	f.reach.OneWay++
	f.tell(0, "cut %d>%d", from.id, to.id)
	f.mendLater("one-way cut", f.outage(), []func(){f.net.Cut(from.id, to.id)})
}

func (f faults) mendLater(what string, d time.Duration, mends []func()) {
	f.After(d, func() {
		f.tell(0, "end of a %s", what)
		for _, mend := range mends {
			mend()
		}
	})
}

func (f faults) slowLink() {
	n := f.anyNode()
	if n == nil {
		return
	}
	f.tell(n.id, "slow links")
	f.net.Slow(n.id, f.outage())
}

// holdLink lets one connection get nothing through for a time, while the others
// between the same nodes do.
func (f faults) holdLink() {
	n := f.anyNode()
	if n == nil || len(n.egress.order) == 0 {
		return
	}
	l := n.egress.order[f.rng.IntN(len(n.egress.order))]
	f.tell(n.id, "connection to %d is held up: %v", l.to, l.class)
	f.net.Link(n.id, l.to).Hold(int(l.class), f.outage())
}

func (f faults) slowDisk() {
	if n := f.anyNode(); n != nil {
		f.reach.SlowDisks++
		f.tell(n.id, "slow disk")
		n.disk.Slow(20, f.outage())
	}
}

// hangDisk lets a disk end nothing for a time, without an error.
func (f faults) hangDisk() {
	if n := f.anyNode(); n != nil {
		f.reach.HungDisks++
		f.tell(n.id, "disk hangs")
		n.disk.Hang(f.outage())
	}
}

// slowMachine makes all work of a node's processor take ten times as long.
func (f faults) slowMachine() {
	if n := f.anyNode(); n != nil {
		f.reach.SlowMachines++
		f.tell(n.id, "slow machine")
		n.slowUntil = f.Now() + f.outage()
	}
}

func (f faults) fillDisk() {
	n := f.anyNode()
	if n == nil || n.disk.Full() {
		return
	}
	f.reach.FullDisks++
	n.disk.fillUp(f.outage())
}

func (f faults) pause() {
	if n := f.anyNode(); n != nil {
		f.reach.Pauses++
		n.pause(f.outage())
	}
}

func (f faults) campaign() {
	n, g := f.anyNode(), f.anyGroup()
	if n == nil || n.members[g.id] == nil {
		return
	}
	f.reach.Campaigns++
	f.tell(n.id, "campaign in group %d", g.id)
	m := n.members[g.id]
	n.bound(func() { m.drive.Post(0, campaignReplica) })()
}

// burst proposes many commands at a node at once, whose answers nobody waits
// for: they fill queues, messages, windows.
func (f faults) burst(g *group, size int) {
	n := f.anyNode()
	if n == nil || n.members[g.id] == nil {
		return
	}
	f.reach.Floods++
	m := n.members[g.id]
	for range size {
		f.history.operations++
		op := &operation{id: f.history.operations, verb: verbPut, key: storeKeys - 1, value: f.history.operations, session: 0, seq: 1,
			padding: int(f.rng.Scale(f.plan.smallest, f.plan.largest))}
		n.bound(func() { m.propose(op, f.plan.deadline, func(answer, error) {}) })()
	}
}
