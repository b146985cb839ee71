// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"
)

// faults makes things go wrong, at the rates of the plan, until the calm.
type faults struct {
	s *sim
	// aim is the node of the present act, if the node is not to be drawn.
	aim *node
}

// begin plans the first of each kind of fault. To add a kind, add its mean
// time to the plan and a line here.
func (f *faults) begin(seed uint64) {
	p := &f.s.plan
	f.every(p.crash, func() { f.crash(f.anyNode()) })
	f.every(p.partition, f.partition)
	f.every(p.oneWay, f.oneWay)
	f.every(p.isolate, f.isolate)
	f.every(p.pause, f.pause)
	f.every(p.slowDsk, f.slowDisk)
	f.every(p.transfer, f.transfer)
	f.every(p.campaign, f.campaign)
	f.every(p.forget, f.forget)
	f.every(p.membership, f.changeMembers)
	f.every(p.burst, f.burst)
	f.every(p.hungDsk, f.hangDisk)
	f.every(p.slowMach, f.slowMachine)
	f.every(p.slowLink, f.slowLinks)
	f.every(p.holdLink, f.holdLink)
	f.beginCoded(seed)
	f.beginLeased()
	f.beginJoints()
}

// every lets something happen once in mean on average; never if mean is 0.
func (f *faults) every(mean time.Duration, happen func()) {
	if mean == 0 {
		return
	}
	f.s.After(f.s.rng.Wait(mean), func() {
		if !f.s.calm() {
			happen()
			f.every(mean, happen)
		}
	})
}

// anyNode returns a node that runs, often the leader; nil if none runs.
func (f *faults) anyNode() *node {
	s := f.s
	if f.aim != nil {
		if !f.aim.up() {
			return nil
		}
		return f.aim
	}
	if n := s.leading(); n != nil && s.rng.Chance(0.4) {
		return n
	}
	up := s.running()
	if len(up) == 0 {
		return nil
	}
	return up[s.rng.IntN(len(up))]
}

// lasting returns how long a fault lasts.
func (f *faults) lasting() time.Duration {
	return f.s.rng.Span(5*time.Millisecond, f.s.plan.outage)
}

// crash ends a node's process or its machine, and starts it again later.
func (f *faults) crash(n *node) {
	s := f.s
	if n == nil || !n.up() {
		return
	}
	keepAll := s.plan.killOnly || s.rng.Chance(0.2)
	s.reach.Crashes++
	if keepAll {
		s.reach.ProcessKills++
	}
	n.crash(keepAll)
	s.After(f.lasting(), func() {
		if !n.retired && !s.calm() {
			n.restart()
		}
	})
}

// depose crashes, now and then, a node leading a term not on its disk yet:
// others have voted for the node in the term and would do so again.
func (f *faults) depose(n *node) {
	s, inc := f.s, n.incarnation
	if !f.s.opts.Depose || s.calm() || !s.rng.Chance(0.5) {
		return
	}
	s.After(s.rng.Within(0, s.plan.syncMin), func() {
		if n.incarnation != inc || !n.up() {
			return
		}
		n.crash(false)
		s.After(f.lasting(), func() {
			n.restart()
			if n.up() && !n.paused && !s.calm() {
				n.proc.campaign()
			}
		})
	})
}

// partition splits the nodes in two.
func (f *faults) partition() {
	s := f.s
	side := uint64(1 + s.rng.IntN(1<<maxNodes-2))
	mends := s.net.Split(side)
	s.reach.Partitions++
	s.tell(0, "partition %07b", side)
	f.mendLater("partition", mends)
}

// oneWay cuts one direction between two nodes.
func (f *faults) oneWay() {
	s := f.s
	from, to := f.anyNode(), f.anyNode()
	if from == nil || to == nil || from == to {
		return
	}
	s.reach.OneWayPartitions++
	s.tell(0, "cut %d>%d", from.id, to.id)
	f.mendLater("one-way cut", []func(){s.net.Cut(from.id, to.id)})
}

// isolate cuts a node off, in one direction or both.
func (f *faults) isolate() {
	s, n := f.s, f.anyNode()
	if n == nil {
		return
	}
	in, out := true, true
	switch s.rng.IntN(4) {
	case 0:
		in = false
	case 1:
		out = false
	}
	mends := s.net.Isolate(n.id, in, out)
	s.reach.Isolations++
	s.tell(n.id, "isolated: in %v, out %v", in, out)
	f.mendLater("isolation", mends)
}

func (f *faults) mendLater(what string, mends []func()) {
	s := f.s
	s.After(f.lasting(), func() {
		if s.calm() {
			return // all is mended
		}
		s.tell(0, "end of a %s", what)
		for _, mend := range mends {
			mend()
		}
	})
}

// pause stops a process for a time; its machine goes on.
func (f *faults) pause() { f.pauseNode(f.anyNode()) }

func (f *faults) pauseNode(n *node) {
	s := f.s
	if n == nil || !n.up() || n.paused {
		return
	}
	s.reach.Pauses++
	s.tell(n.id, "pause")
	n.pause()
	inc := n.incarnation
	s.After(f.lasting(), func() {
		if n.incarnation == inc && n.paused {
			s.tell(n.id, "resume")
			n.resume()
		}
	})
}

// slowDisk makes a node's syncs take long for a time.
func (f *faults) slowDisk() {
	n := f.anyNode()
	if n == nil {
		return
	}
	n.slowUntil = f.s.Now() + f.lasting()
	f.s.tell(n.id, "slow disk")
}

// hangDisk lets a disk end nothing for a time, without an error.
func (f *faults) hangDisk() {
	if n := f.anyNode(); n != nil {
		f.s.reach.HungDisks++
		f.s.tell(n.id, "disk hangs")
		n.spindle.Hang(f.lasting())
	}
}

// slowMachine makes a node's machine ten times slower for a time.
func (f *faults) slowMachine() {
	s, n := f.s, f.anyNode()
	if n == nil {
		return
	}
	s.reach.SlowMachines++
	s.tell(n.id, "slow machine")
	inc := n.incarnation
	s.Stutter(f.lasting(), func(d time.Duration) {
		if n.incarnation == inc && !n.paused && !s.calm() {
			n.stand(d)
		}
	})
}

// slowLinks makes what a node sends slow for a time.
func (f *faults) slowLinks() {
	if n := f.anyNode(); n != nil {
		f.s.tell(n.id, "slow links")
		f.s.net.Slow(n.id, f.lasting())
	}
}

// holdLink lets nothing through between two nodes for a time, in one direction.
func (f *faults) holdLink() {
	from, to := f.anyNode(), f.anyNode()
	if from != nil && from != to {
		f.s.tell(from.id, "connection to %d is held up", to.id)
		f.s.net.Link(from.id, to.id).Hold(0, f.lasting())
	}
}

// transfer asks some node to hand leadership to another.
func (f *faults) transfer() {
	s, n, to := f.s, f.anyNode(), f.anyNode()
	if n == nil || to == nil || n.paused {
		return
	}
	s.reach.Transfers++
	s.tell(n.id, "transfer to %d", to.id)
	n.proc.transfer(to.id)
}

// campaign makes some node campaign out of turn.
func (f *faults) campaign() {
	s, n := f.s, f.anyNode()
	if n == nil || n.paused {
		return
	}
	s.reach.Campaigns++
	s.tell(n.id, "campaign")
	n.proc.campaign()
}

// forget makes some node forget its leader.
func (f *faults) forget() {
	s, n := f.s, f.anyNode()
	if n == nil || n.paused {
		return
	}
	s.reach.Forgets++
	s.tell(n.id, "forget leader")
	n.proc.forget()
}

// burst proposes many commands at once, whose answers nobody waits for. They
// fill logs, messages and windows; so writes have several entries, and can be
// torn.
func (f *faults) burst() {
	n := f.anyNode()
	if n == nil || n.paused {
		return
	}
	f.burstOf(f.s.rng.Between(2, 24), n)
}

func (f *faults) burstOf(size int, n *node) {
	s := f.s
	if n == nil || !n.up() || n.paused {
		return
	}
	s.history.sessions++
	s.reach.Bursts++
	s.tell(n.id, "burst of %d", size)
	for i := range size {
		s.history.values++
		n.proc.propose(command{id: commandID{client: s.history.sessions, seq: uint32(i + 1)}, verb: verbPut, key: burstKey,
			value: s.history.values, padding: s.rng.IntN(s.plan.padding + 1)}, func(result) {})
	}
}
