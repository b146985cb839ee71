// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// beginFaults plans the first of each kind of fault that the plan has.
func (w *sim) beginFaults() {
	p := &w.plan
	w.every(p.crash, func() { w.crash(true) })
	w.every(p.kill, func() { w.crash(false) })
	w.every(p.tornWrite, w.tearWrite)
	w.every(p.partition, w.partition)
	w.every(p.isolate, func() { w.isolate(w.anyNode(), w.outage()) })
	w.every(p.oneWay, w.oneWay)
	w.every(p.slowLink, w.slowLink)
	w.every(p.holdLink, w.holdLink)
	w.every(p.slowDisk, w.slowDisk)
	w.every(p.fullDisk, w.fillDisk)
	w.every(p.hungDisk, w.hangDisk)
	w.every(p.damage, w.damageLog)
	w.every(p.slowMachine, w.slowMachine)
	w.every(p.pause, w.pause)
	w.every(p.members, func() { w.changeMembers(w.anyGroup()) })
	w.every(p.repeats.every, func() { w.deafen(w.anyGroup()) })
	w.every(p.transfer, func() { w.transfer(w.anyGroup()) })
	w.every(p.campaign, w.campaign)
	w.every(p.coding.densify, func() { w.densify(w.anyGroup()) })
	w.every(p.leasing.rosters, func() { w.wishRoster(w.anyGroup()) })
	w.every(p.leasing.probes, func() { w.probe(w.anyGroup()) })
	w.every(p.flood, func() { w.burst(w.anyGroup(), 2+w.rng.IntN(20)) })
}

// every has something happen once in mean on average, until the calm.
func (w *sim) every(mean time.Duration, happen func()) {
	if mean == 0 {
		return
	}
	w.After(w.rng.Wait(mean), func() {
		if !w.calming && w.failure == nil {
			happen()
			w.every(mean, happen)
		}
	})
}

// outage draws how long a fault lasts.
func (w *sim) outage() time.Duration {
	return w.rng.Span(5*time.Millisecond, max(w.plan.outage, 6*time.Millisecond))
}

func (w *sim) anyGroup() *group { return w.groups[w.rng.IntN(len(w.groups))] }

// anyNode returns a node that runs, often a leader; nil if none runs.
func (w *sim) anyNode() *node {
	if m := w.anyGroup().leading(); m != nil && w.rng.Chance(0.4) {
		return m.n
	}
	up := w.running()
	if len(up) == 0 {
		return nil
	}
	return up[w.rng.IntN(len(up))]
}

func (w *sim) crash(power bool) {
	n := w.anyNode()
	if n == nil {
		return
	}
	if power {
		w.reach.Crashes++
	} else {
		w.reach.Kills++
	}
	n.crash(power)
	w.After(w.outage(), n.start)
}

// tearWrite lets power fail at one of the next operations on the file system.
func (w *sim) tearWrite() {
	if n := w.anyNode(); n != nil && !n.disk.Fused() {
		n.disk.Fuse(1 + w.rng.IntN(30))
	}
}

func (w *sim) partition() {
	side := 1 + w.rng.IntN(1<<maxNodes-2)
	mends := w.net.Split(uint64(side))
	w.reach.Partitions++
	w.tell(0, "partition %09b", side)
	w.mendLater("partition", w.outage(), mends)
}

// isolate cuts a node off from all others.
func (w *sim) isolate(n *node, d time.Duration) {
	if n == nil {
		return
	}
	w.reach.Isolations++
	w.tell(n.id, "isolated")
	w.mendLater("isolation", d, w.net.Isolate(n.id, true, true))
}

func (w *sim) oneWay() {
	from, to := w.anyNode(), w.anyNode()
	if from == nil || from == to {
		return
	}
	w.reach.OneWay++
	w.tell(0, "cut %d>%d", from.id, to.id)
	w.mendLater("one-way cut", w.outage(), []func(){w.net.Cut(from.id, to.id)})
}

func (w *sim) mendLater(what string, d time.Duration, mends []func()) {
	w.After(d, func() {
		w.tell(0, "end of a %s", what)
		for _, mend := range mends {
			mend()
		}
	})
}

func (w *sim) slowLink() {
	n := w.anyNode()
	if n == nil {
		return
	}
	w.tell(n.id, "slow links")
	w.net.Slow(n.id, w.outage())
}

// holdLink lets one connection get nothing through for a time, while the others
// between the same nodes do.
func (w *sim) holdLink() {
	n := w.anyNode()
	if n == nil || len(n.egress.order) == 0 {
		return
	}
	l := n.egress.order[w.rng.IntN(len(n.egress.order))]
	w.tell(n.id, "connection to %d is held up: %v", l.to, l.class)
	w.net.Link(n.id, l.to).Hold(int(l.class), w.outage())
}

func (w *sim) slowDisk() {
	if n := w.anyNode(); n != nil {
		w.reach.SlowDisks++
		w.tell(n.id, "slow disk")
		n.disk.Slow(20, w.outage())
	}
}

// hangDisk lets a disk end nothing for a time, without an error.
func (w *sim) hangDisk() {
	if n := w.anyNode(); n != nil {
		w.reach.HungDisks++
		w.tell(n.id, "disk hangs")
		n.disk.Hang(w.outage())
	}
}

// slowMachine makes all work of a node's processor take ten times as long.
func (w *sim) slowMachine() {
	if n := w.anyNode(); n != nil {
		w.reach.SlowMachines++
		w.tell(n.id, "slow machine")
		n.slowUntil = w.Now() + w.outage()
	}
}

func (w *sim) fillDisk() {
	n := w.anyNode()
	if n == nil || n.disk.Full() {
		return
	}
	w.reach.FullDisks++
	n.disk.fillUp(w.outage())
}

func (w *sim) pause() {
	if n := w.anyNode(); n != nil {
		w.reach.Pauses++
		n.pause(w.outage())
	}
}

func (w *sim) campaign() {
	n, g := w.anyNode(), w.anyGroup()
	if n == nil || n.members[g.id] == nil {
		return
	}
	w.reach.Campaigns++
	w.tell(n.id, "campaign in group %d", g.id)
	m := n.members[g.id]
	n.bound(func() { m.drive.Post(0, campaignReplica) })()
}

// burst proposes many commands at a node at once, whose answers nobody waits
// for: they fill queues, messages, windows.
func (w *sim) burst(g *group, size int) {
	n := w.anyNode()
	if n == nil || n.members[g.id] == nil {
		return
	}
	w.reach.Floods++
	m := n.members[g.id]
	for range size {
		w.history.operations++
		op := &operation{id: w.history.operations, verb: verbPut, key: storeKeys - 1, value: w.history.operations, session: 0, seq: 1,
			padding: int(w.rng.Scale(w.plan.smallest, w.plan.largest))}
		n.bound(func() { m.propose(op, w.plan.deadline, func(answer, error) {}) })()
	}
}
