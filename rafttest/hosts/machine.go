// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// machine is a member's computer.
type machine struct {
	w    *sim
	id   uint64
	disk *disk
	lib  library
	// proc is nil while none runs. A lazy one is made by the first message.
	proc process
	lazy bool
	// member says that the operator has seen the machine among the members.
	member bool
	// gone says that the member was removed for good.
	gone bool
	// life counts processes: work begun by an earlier process does not go on.
	life int
	// paused processes let everything wait.
	paused  bool
	backlog []func()

	// target is the index that the member must have applied soon; targetAt,
	// since when.
	target   uint64
	targetAt time.Duration

	// wanted are callers that wait for a sync which has not begun.
	wanted  []func()
	syncing bool
	spindle world.Spindle
}

// process is a host's program.
type process interface {
	common() *replica
	tick()
	receive(from uint64, f frame)
	// put and get call done at most once, unless the process ends before.
	put(c command, done func())
	get(c command, done func(value uint32))
	// work does the core's requests.
	work()
}

// start runs a process on the machine.
func (m *machine) start() {
	m.life++
	m.paused, m.backlog = false, nil
	m.wanted, m.syncing = nil, false
	m.target = 0
	m.lazy = false
	m.w.say(m.id, "starts %s: log %d..%d, hard state %+v, state at %+v", m.lib.Name,
		m.disk.live.base.index+1, m.disk.live.last(), m.disk.live.hard, m.disk.live.state.at)
	m.w.guard(m.id, func() { m.proc = m.w.newProcess(m) })
	if m.proc == nil {
		return
	}
	m.every(tickTime, func() { m.proc.tick(); m.proc.work() })
}

// every calls f again and again during this life.
func (m *machine) every(d time.Duration, f func()) {
	life := m.life
	var again func()
	again = func() {
		if m.life != life || m.proc == nil {
			return
		}
		if !m.paused { // a tick in a pause is lost
			m.w.guard(m.id, f)
		}
		m.w.After(d, again)
	}
	m.w.After(m.w.faults.Within(0, d), again)
}

// later calls f in a while, in this life, when the process is not paused.
func (m *machine) later(d time.Duration, f func()) {
	life := m.life
	m.w.After(d, func() {
		if m.life == life {
			m.run(f)
		}
	})
}

// run calls f now, or when the process goes on.
func (m *machine) run(f func()) {
	switch {
	case m.proc == nil:
	case m.paused:
		m.backlog = append(m.backlog, f)
	default:
		m.w.guard(m.id, f)
	}
}

// sync makes all earlier writes durable, and then calls f. Callers during a
// sync share the next sync.
func (m *machine) sync(f func()) {
	m.wanted = append(m.wanted, f)
	if !m.syncing {
		m.beginSync()
	}
}

func (m *machine) beginSync() {
	n, done, life := len(m.disk.pending), m.wanted, m.life
	m.wanted, m.syncing = nil, true
	m.spindle.Beside(m.w.faults.Within(m.w.plan.syncMin, m.w.plan.syncMax), func() {
		if m.life != life {
			return
		}
		m.disk.sync(n)
		m.syncing = false
		if len(m.wanted) > 0 {
			m.beginSync()
		}
		for _, f := range done {
			m.run(f)
		}
	})
}

// stop ends the process. Its writes stay.
func (m *machine) stop() {
	m.end()
	m.disk.sync(len(m.disk.pending))
}

// crash takes the power away.
func (m *machine) crash() {
	m.end()
	n := len(m.disk.pending)
	keep := m.w.faults.IntN(n + 1)
	torn := m.disk.crash(keep)
	if torn {
		m.w.reach.TornAppends++
	}
	m.w.say(m.id, "crashes: %d of %d records stay, torn %v", keep, n, torn)
}

func (m *machine) end() {
	m.countLeases()
	m.life++
	m.proc, m.backlog, m.paused = nil, nil, false
	m.w.breakStreams(m.id)
}

// pause holds the process up for a while.
func (m *machine) pause(d time.Duration) {
	m.paused = true
	life := m.life
	m.w.After(d, func() {
		if m.life == life {
			m.resume()
		}
	})
}

func (m *machine) resume() {
	m.paused = false
	for len(m.backlog) > 0 && !m.paused {
		f := m.backlog[0]
		m.backlog = m.backlog[1:]
		m.run(f)
	}
}

// countLeases adds up the counts of a process's leases, at the process's end.
func (m *machine) countLeases() {
	if m.proc == nil || !m.lib.Leased {
		return
	}
	s := m.proc.common().core.(leasedCore).LeaseStatus()
	world.AddCounts(&m.w.leases, leaseReach{
		LocalReads: s.Reads.Local, LeaderReads: s.Reads.Leader, WaitedReads: s.Reads.Waited, HeldReads: s.Reads.Held,
		Redirected: s.Reads.Redirected, NoteCommits: s.Reads.NoteCommits,
		Granted: s.Counts.Granted, Revoked: s.Counts.Revoked, Confirmed: s.Counts.Confirmed, Lapsed: s.Counts.Lapsed,
		Adopted: s.Counts.Adopted, Removed: s.Counts.Removed, Restored: s.Counts.Restored,
	})
	if s.Reads.Refused+s.Counts.Refused > 0 {
		m.w.fail("n%d refuses %d messages about leases", m.id, s.Reads.Refused+s.Counts.Refused)
	}
}
