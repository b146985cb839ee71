// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/world"
)

// machine is a state machine, with the host's knowledge.
type machine struct {
	store   store
	applied uint64
	conf    *pb.ConfState
}

// member reports whether the node is a member in the machine's configuration.
func (m *machine) member(id uint64) bool { return members.Has(m.conf, id) }

// backlog bounds the packets that wait while a process is paused.
const backlog = 512

// node is a machine: a disk, and a process, running, paused or absent.
type node struct {
	s    *sim
	id   uint64
	disk *disk        // nil: the node does not exist yet
	proc *coreProcess // nil: none runs

	// incarnation counts starts, so that the plans of a process do not happen
	// to the next process.
	incarnation uint64
	paused      bool
	// retired says that the host has shut the node down because the node was
	// removed.
	retired bool
	// doomed says that the machine loses power in its next write.
	doomed bool
	// uncoded says that the node runs without coding, in a run with coding.
	uncoded bool
	// frozen is what happens when the pause is over.
	frozen  []func()
	waiting int // packets in frozen
	// pausedAt is when the pause began.
	pausedAt time.Duration

	tickEvery time.Duration // of this node's clock
	slowUntil time.Duration // the disk is slow until then
	spindle   world.Spindle
	// startedAt is when the process began, lateUntil until when it applies nothing.
	startedAt, lateUntil time.Duration
	// starvedUntil is when units sent to the node cease to get lost.
	starvedUntil time.Duration
	rand         world.Draws   // election timeouts
	leaseWas     time.Duration // the longest of all runs
}

func (n *node) up() bool { return n.proc != nil }

// start runs a process on what the disk has.
func (n *node) start() {
	n.incarnation++
	n.retired, n.startedAt = false, n.s.Now()
	n.s.tell(n.id, "start: log %d..%d, term %d vote %d commit %d, checkpoint %d", n.disk.live.baseIndex+1, n.disk.live.last(),
		n.disk.live.state.term, n.disk.live.state.vote, n.disk.live.state.commit, n.disk.live.checkpoint.GetMetadata().GetIndex())
	n.s.mendClock(n)
	n.disk.recover()
	n.s.startedOld(n)
	n.s.check.started(n, n.disk.live.checkpoint.GetMetadata().GetIndex())
	n.proc = newCoreProcess(n)
	n.later(n.s.rng.Within(0, n.tickEvery), n.clock)
}

// clock lets a tick pass and plans the next.
func (n *node) clock() {
	ticks := n.atOnce()
	n.later(time.Duration(ticks)*n.tickEvery, n.clock)
	for range ticks {
		n.s.story.Tick(n.id)
		n.proc.tick()
		n.s.misled(n)
	}
}

// atOnce returns how many ticks come at once: a host that waits for its disk makes up
// for those that it missed.
func (n *node) atOnce() int {
	switch j := n.s.plan.joints; {
	case j == nil || j.gap[n.id] < 2:
		return 1
	case j.steady:
		return j.gap[n.id]
	default:
		return 1 + j.draws.IntN(j.gap[n.id])
	}
}

// crash ends the process; keepAll says that the machine survives, and all its
// writes.
func (n *node) crash(keepAll bool) {
	d, s := n.disk, n.s
	keep := len(d.pending)
	if !keepAll {
		keep = s.rng.IntN(len(d.pending) + 1)
		if s.plan.forgetful {
			keep = 0
		}
		if at := s.tears(n); at > 0 {
			keep = at
		}
	}
	if d.durable.last() == 0 && keep < len(d.pending) {
		keep = 0 // a host founds a node in one step: see founding
	}
	lost := len(d.pending) - keep
	s.reach.LostRecords += uint64(lost)
	knew := d.live.state.commit
	torn := d.crash(keep)
	if torn {
		s.reach.TornWrites++
	}
	if s.plan.coded != nil {
		s.coded.crashed(torn, d.live.state.commit < min(knew, d.live.last()))
	}
	if s.opts.Bug == losesSynced && !keepAll {
		loseSynced(d, s.rng)
	}
	if s.opts.Bug == forgetVote {
		d.durable.state.vote = 0
		d.live.state.vote = 0
	}
	n.crashedEarly()
	s.tell(n.id, "crash: %d unsynced records kept, %d lost, torn %v", keep, lost, torn)
	n.stop()
	s.check.lookClosely()
}

// stop ends the process.
func (n *node) stop() {
	n.s.countLeases(n)
	n.proc, n.doomed = nil, false
	n.incarnation++
	n.paused, n.frozen, n.waiting = false, nil, 0
}

// restart starts the node again if it is down.
func (n *node) restart() {
	if n.disk == nil || n.up() {
		return
	}
	n.s.reach.Restarts++
	n.start()
}

// later plans something that the process does after a time.
func (n *node) later(d time.Duration, do func()) { n.s.After(d, n.bound(do)) }

// bound binds a call to the process running now. If the process is paused when
// the time comes, the call runs afterwards; if the process is gone, never.
func (n *node) bound(do func()) func() {
	inc := n.incarnation
	return func() {
		if n.incarnation == inc {
			n.whenAwake(do)
		}
	}
}

func (n *node) whenAwake(do func()) {
	if n.paused {
		n.frozen = append(n.frozen, do)
		return
	}
	do()
}

// receive takes a packet from the network.
func (n *node) receive(p packet) {
	s := n.s
	switch {
	case !n.up():
		s.net.drop(p)
		return
	case n.paused && n.waiting >= backlog:
		s.net.Lost++
		s.net.drop(p)
		return
	case n.paused:
		n.waiting++
	}
	if s.reach.Delivered++; n.paused {
		n.frozen = append(n.frozen, func() { n.proc.receive(p.from, p.data) })
	} else { // most: whenAwake would cost an allocation
		n.proc.receive(p.from, p.data)
	}
	if p.snap {
		s.net.hear(p, s.plan.links.Most, true)
	}
}

// stand stops the process for a time.
func (n *node) stand(d time.Duration) {
	n.pause()
	inc := n.incarnation
	n.s.After(d, func() {
		if n.incarnation == inc {
			n.resume()
		}
	})
}

// pause stops the process for a time: its clock, its work and its reading of
// the network, but not its disk.
func (n *node) pause() { n.paused, n.pausedAt = true, n.s.Now() }

// resume lets the process go on: with all missed events at once. Some of the
// missed ticks are made up for, as hosts differ here.
func (n *node) resume() {
	if !n.paused {
		return
	}
	todo, inc := n.frozen, n.incarnation
	n.paused, n.frozen, n.waiting = false, nil, 0
	ticks := min(int((n.s.Now()-n.pausedAt)/n.tickEvery), n.s.plan.catchUp)
	for range ticks {
		n.proc.tick()
	}
	for _, do := range todo {
		if n.incarnation != inc {
			return // the call made the process end
		}
		do()
	}
}

// syncTime draws how long a sync takes.
func (n *node) syncTime() time.Duration {
	d := n.s.rng.Within(n.s.plan.syncMin, n.s.plan.syncMax)
	more, _ := n.s.held()
	d += more
	if n.s.Now() < n.slowUntil {
		n.s.reach.SlowSyncs++
		d = n.s.rng.Within(20*time.Millisecond, 400*time.Millisecond)
	}
	return d
}

// sync makes durable what is written now, and then lets the process go on with
// done. The disk does not wait for a process that is paused. Now and then the
// machine crashes instead.
func (n *node) sync(done func()) {
	s, written, inc := n.s, n.disk.synced+len(n.disk.pending), n.incarnation
	hit := !s.calm() && (n.doomed || s.rng.Chance(s.plan.crashWrite))
	n.spindle.Beside(n.syncTime(), func() {
		switch {
		case n.incarnation != inc:
			return
		case hit && !s.calm():
			s.reach.CrashesInWrite++
			s.faults.crash(n)
			return
		}
		n.disk.sync(max(written-n.disk.synced, 0)) // another may have ended first
		s.check.synced(n)
		n.whenAwake(done)
	})
}

// retire shuts the node down some time after the node learnt of its removal, and
// when the members left know of the removal: until then a member may need the node's
// vote.
func (n *node) retire() {
	n.later(n.s.rng.Span(10*time.Millisecond, 2*time.Second), func() {
		if n.s.net.IsCalm() || n.proc.member(n.id) {
			return // added again, or the end is near: see finale
		}
		if !n.s.allApplied() {
			n.retire()
			return
		}
		n.s.tell(n.id, "retires")
		n.s.reach.Removals++
		n.crash(true)
		n.retired = true
	})
}

// allApplied reports whether all members are up and have applied the last change of
// the members, and know after a loss of power that it is committed.
func (s *sim) allApplied() bool {
	newest := s.check.newestConf()
	return !slices.ContainsFunc(s.nodes, func(n *node) bool {
		return members.Has(newest.conf, n.id) && (n.disk == nil || n.disk.durable.state.commit < newest.index || !n.up() || n.proc.applied < newest.index)
	})
}

// core returns the process of a node if it runs with leases and is awake, or nil.
func (n *node) core() *coreProcess {
	if n.paused || n.proc == nil || n.proc.rn == nil {
		return nil
	}
	return n.proc
}
