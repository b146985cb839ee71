// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/storage"
)

// process is the program of a machine, in one life after the other.
type process struct {
	w  *sim
	id uint64
	// life counts the starts. Work begun in a life is void in the next.
	life   uint64
	up     bool
	paused bool
	waking []func() // calls for the end of a pause
}

// bound returns a call at the process in its present life. In a pause, the call waits for the end of the pause.
func (p *process) bound(happen func()) func() {
	life := p.life
	return func() {
		switch {
		case p.life != life || !p.up:
		case p.paused:
			p.waking = append(p.waking, happen)
		default:
			happen()
		}
	}
}

// wake makes the calls that have waited.
func (p *process) wake() {
	waking := p.waking
	p.waking = nil
	for _, happen := range waking {
		p.bound(happen)()
	}
}

// node is a machine: a processor, a disk, a clock, and while the machine runs,
// a process with a member of each of its groups.
type node struct {
	process
	tickEvery time.Duration
	slowUntil time.Duration // the machine is slow
	lateUntil time.Duration // its state machines are late

	clock   *clock // of this life
	cpu     world.CPU
	disk    disk
	members map[uint64]*member // by group
	egress  egress
	place   *placement.Node // of this life; nil: without placement
	catchUp *catchup.Budget // likewise; nil: none
	// kept is what the state machines have made durable.
	kept map[uint64]keptState
	had  map[uint64]uint64 // applied indexes of the last process, by group
	rand world.Draws
}

func (w *sim) newNode(id uint64, seed uint64) *node {
	n := &node{process: process{w: w, id: id}, rand: world.NewDraws(seed, 100+id), kept: map[uint64]keptState{}, had: map[uint64]uint64{}}
	n.tickEvery = tickTime + time.Duration(w.plan.drift*(2*w.rng.Float64()-1)*float64(tickTime))
	n.disk = newDisk(n)
	return n
}

// after runs a call at the process later, unless the process ends before; a
// paused process runs the call after the pause.
func (n *node) after(d time.Duration, happen func()) { n.w.After(d, n.bound(happen)) }

// start starts the process: a member of every group that the node was told of.
func (n *node) start() {
	if n.up || n.w.failure != nil {
		return
	}
	n.life++
	n.up, n.paused, n.waking = true, false, nil
	n.clock = n.newClock()
	n.cpu = world.CPU{After: n.after, Speed: n.speed}
	n.egress = newEgress(n)
	n.place = n.newPlacement()
	n.catchUp = n.newCatchUp()
	n.members = map[uint64]*member{}
	n.w.tell(n.id, "start %d", n.life)
	if err := n.disk.open(); err != nil {
		n.cannotStart(fmt.Errorf("open the log: %w", err))
		return
	}
	for _, g := range n.w.groups {
		if g.knows(n.id) {
			n.join(g)
		}
	}
	n.tick(n.life)
}

// cannotStart ends a process without room on its disk; a later try follows.
// Nothing else keeps a process from starting.
func (n *node) cannotStart(err error) {
	if n.metDamage(err) {
		return
	}
	if !n.disk.Full() || !errors.Is(err, syscall.ENOSPC) {
		n.w.fail(noFailure, "node %d does not start: %v", n.id, err)
		return
	}
	n.fail(err)
}

// speed returns how many times as long as usual the processor takes.
func (n *node) speed() int {
	if n.w.Now() < n.slowUntil {
		return 10
	}
	return 1
}

// join starts the member of a group.
func (n *node) join(g *group) {
	if !n.up || n.members[g.id] != nil {
		return
	}
	m, err := newMember(n, g)
	if err != nil {
		n.cannotStart(fmt.Errorf("group %d: %w", g.id, err))
		return
	}
	n.members[g.id] = m
	m.drive.Kick()
}

// tick is the clock of the process. A pause swallows ticks.
func (n *node) tick(life uint64) {
	n.w.After(n.tickIn(), func() {
		if n.life != life || !n.up {
			return
		}
		n.tick(life)
		if n.paused {
			return
		}
		n.clock.ticked = n.w.Now()
		for _, g := range n.w.groups {
			if m := n.members[g.id]; m != nil {
				m.ticked()
			}
		}
	})
}

// crash ends the process. With power the file system has all that was written,
// without only what was synced and, by chance, some of the rest.
func (n *node) crash(power bool) {
	if !n.up {
		return
	}
	n.count()
	n.up, n.paused, n.waking = false, false, nil
	n.egress.drop()
	n.disk.crash(power)
	for _, g := range n.w.groups {
		if m := n.members[g.id]; m != nil {
			m.unblock() // its connections break
			n.had[g.id] = m.applied
		}
	}
	if power {
		n.w.net.hangUp(n)
	}
	n.w.tell(n.id, "down, power %v", power)
}

// fail is called when the process ends itself.
func (n *node) fail(err error) {
	n.w.tell(n.id, "fails: %v", err)
	n.w.reach.Failures++
	n.crash(true)
	n.w.After(electionTime, n.start)
}

// pause stops the process for a time; its disk and its links go on.
func (n *node) pause(d time.Duration) {
	if !n.up || n.paused {
		return
	}
	n.paused = true
	n.w.tell(n.id, "pause")
	life := n.life
	n.w.After(d, func() {
		if n.life == life {
			n.resume()
		}
	})
}

func (n *node) resume() {
	if !n.up || !n.paused {
		return
	}
	n.paused = false
	n.w.tell(n.id, "resume")
	n.wake()
}

func (n *node) String() string { return fmt.Sprintf("node %d", n.id) }

// clock is a node's clock, which the process finds when it starts: it runs at a rate of its
// own within the bound, and goes on while the process is paused.
type clock struct {
	n      *node
	origin time.Duration
	rate   float64
	// ticked is when a tick was last looked at, for a planted bug.
	ticked time.Duration
}

func (n *node) newClock() *clock {
	w := n.w
	if !w.plan.leasing.on {
		return &clock{n: n}
	}
	off := float64(w.plan.leasing.driftPPM) / 1e6 * (2*n.rand.Float64() - 1)
	if w.opts.Bug == wildClocks {
		off = 0.6 * float64(int(n.id%2)*2-1)
	}
	return &clock{n: n, origin: time.Duration(n.rand.IntN(1<<40)) + 1, rate: 1 + off}
}

// Now implements raft.Clock.
func (c *clock) Now() time.Duration {
	at := c.n.w.Now()
	if c.n.w.opts.Bug == clockOfTicks {
		at = c.ticked
	}
	return c.origin + time.Duration(c.rate*float64(at))
}

// tickedClock is a node's clock as of the last tick, for a planted bug.
type tickedClock struct{ *clock }

// Now implements raft.Clock.
func (c tickedClock) Now() time.Duration {
	return c.origin + time.Duration(c.rate*float64(c.ticked))
}

// newPlacement returns the placement of a process that starts, or nil.
func (n *node) newPlacement() *placement.Node {
	p := &n.w.plan.placing
	if !p.on {
		return nil
	}
	place, err := placement.NewNode(placement.NodeConfig{ID: n.id, Timeout: electionTime, Clock: n.w.Now, Queue: n.egress.standing, Weight: p.weights[n.id]})
	if err != nil {
		n.w.fail(noFailure, "%v: %v", n, err)
	}
	return place
}

// newCatchUp returns the budget of a process that starts, or nil.
func (n *node) newCatchUp() *catchup.Budget {
	if n.w.plan.catchUp == 0 {
		return nil
	}
	return catchup.New(n.w.plan.catchUp, n.w.Now)
}

// tickIn returns when a node's next tick comes.
func (n *node) tickIn() time.Duration {
	if j := n.w.plan.joints; j != nil && j.gap[n.id] > 1 {
		return time.Duration(1+j.draws.IntN(j.gap[n.id])) * n.tickEvery
	}
	return n.tickEvery
}

// plain reports whether a node runs upstream's library, without coding and leases.
func (n *node) plain() bool {
	j := n.w.plan.joints
	return j != nil && j.upstream>>n.id&1 == 1
}

// metDamage ends a process that read what is damaged: its group is out of service.
func (n *node) metDamage(err error) bool {
	if n.disk.damage == nil || !errors.Is(err, storage.ErrDamaged) {
		return false
	}
	n.w.reach.DamageMet++
	n.fail(err)
	n.repair()
	return true
}

// repair gives a node that is down the bytes of its log again.
func (n *node) repair() {
	if n.disk.damage == nil {
		return
	}
	if err := n.disk.damage.Repair(); err != nil {
		n.w.fail(noFailure, "%v: repair the log: %v", n, err)
	}
	n.disk.damage = nil
}

// count counts what a process that ends, and its members, have seen.
func (n *node) count() {
	for _, g := range n.w.groups {
		if m := n.members[g.id]; m != nil {
			m.count()
		}
	}
	s := n.catchUp.Statistics(catchup.Sending)
	n.w.reach.CatchUps += s.Turns
	n.w.reach.CatchUpsDelayed += s.Delayed
}

func (m *member) count() {
	st, r := m.r.Status(), &m.n.w.reach
	r.QuorumRestarts += st.Counters.QuorumRestarts
	r.QuorumFallbacks += st.Counters.QuorumFallbacks
	r.QuorumTurns += st.Counters.QuorumTurns
	r.HandOversSlow += st.Counters.HandOversSlow
	r.HandOversPreferred += st.Counters.HandOversPreferred
	m.n.w.gateReach.ReportsAgain += st.Counters.ReportsAgain
	m.n.w.gateReach.Held += st.Counters.HeldIn
	s := st.Leases
	if s == nil {
		return
	}
	r.countTuned(s)
	r.Granted += s.Counts.Granted
	r.Revoked += s.Counts.Revoked
	r.Adopted += s.Counts.Adopted
	r.Removed += s.Counts.Removed
	r.Restored += s.Counts.Restored
	r.HeldReads += s.Reads.Held
	r.WaitedReads += s.Reads.Waited
	r.CutReads += s.Reads.Cut
	r.NoteCommits += s.Reads.NoteCommits
	if s.Reads.Refused+s.Counts.Refused > 0 {
		m.n.w.fail(noFailure, "%v, group %d refuses %d messages about leases", m.n, m.g.id, s.Reads.Refused+s.Counts.Refused)
	}
}
