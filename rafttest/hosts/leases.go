// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// Settings of leases, the same at all members and in all their processes: a lease may
// last longer than an election timeout, and clocks gain or lose 3%.
const (
	leaseTime     = 300 * time.Millisecond
	leaseFail     = 100 * time.Millisecond
	leaseDriftPPM = 30_000
)

// leased is a library with roster leases, on clocks with rates anywhere within the bound.
// beyond, if not 0, is how many times the bound clocks go beyond it. The etcd-like
// host shows one revision for its whole store, so to it each entry concerns every
// key; the other one names the key of an entry.
func leased(lib library, kind kind, notes bool, beyond float64) library {
	below := lib.New
	lib.Leased = true
	lib.Types = max(lib.Types, int(raft.MsgLeases)+1)
	lib.Name += " leased"
	if notes {
		lib.Name += " with notes"
	}
	lib.New = func(reach *reach, cfg raft.Config) (core, error) {
		rho := leaseDriftPPM / 1e6 * max(beyond, 1)
		sign := 1.0
		if cfg.Rand.IntN(2) == 0 {
			sign = -1
		}
		if beyond == 0 {
			sign *= float64(cfg.Rand.IntN(1001)) / 1000
		}
		drifting := driftingClock{cfg.Clock, time.Duration(1 + cfg.Rand.IntN(1<<50)), 1 + sign*rho}
		if p, ok := cfg.Clock.(*processClock); ok {
			p.leases = drifting
		}
		cfg.Clock = drifting
		cfg.Leases = &raft.Leases{
			Tick: tickTime, Boot: 1 + uint64(cfg.Rand.IntN(1<<62)), Lease: leaseTime, Fail: leaseFail, Hold: 2 * tickTime,
			DriftPPM: leaseDriftPPM, Resolution: time.Microsecond, Notes: notes,
			Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}},
		}
		if kind == cockroachLike {
			cfg.Leases.Spans = writtenKeys
		}
		return below(reach, cfg)
	}
	return lib
}

// driftingClock is the clock of a process: another origin and another rate each time.
type driftingClock struct {
	raft.Clock
	origin time.Duration
	rate   float64
}

// Now implements raft.Clock.
func (c driftingClock) Now() time.Duration {
	return c.origin + time.Duration(c.rate*float64(c.Clock.Now()))
}

// writtenKeys returns the keys that a command writes, one or none. The result is nil if the
// keys are unknown, because a node may have only the head of a coded entry.
func writtenKeys(data []byte) []leases.Span {
	if len(data) < headLen+bodyLen {
		return nil
	}
	if op(data[headLen]) != opPut {
		return []leases.Span{}
	}
	return []leases.Span{keySpan(data[headLen+1])}
}

func keySpan(key byte) leases.Span { return leases.KeySpan(string(rune('a' + key))) }

// readsSpans draws whether a read names its key, where entries do.
func (w *sim) readsSpans() bool {
	return w.opts.Library.Leased && w.opts.Kind == cockroachLike && w.clients.Chance(0.7)
}

// leasedCore is what a core with leases has beside the rest.
type leasedCore interface {
	LeaseStatus() raft.LeaseStatus
	SetResponders(wanted []leases.Want, tuner ...leases.TunerMode) error
	RetireLeases(retire bool) error
}

// beginLeases has an operator choose responders now and then, and retire leases for a while.
func (w *sim) beginLeases() {
	if !w.opts.Library.Leased {
		return
	}
	w.repeat(probeEvery, w.probe)
	w.repeat(w.plan.rosterEvery, func() {
		p := w.leader()
		if p == nil {
			return
		}
		r, c := p.common(), p.common().core.(leasedCore)
		r.m.run(func() {
			switch {
			case w.faults.Chance(0.2) && c.RetireLeases(true) == nil:
				w.leases.Retired++
				w.After(w.faults.Within(0, 2*leaseTime), w.leasesOn)
			case c.SetResponders(w.someResponders()) == nil:
				w.leases.Renamed++
			}
			p.work()
		})
	})
}

// leasesOn has the operator switch leases on again, at the node that leads by now. A node that
// leads without the news goes by the wish to retire leases, so the operator asks again when
// all is calm: a host that drops the contexts of heartbeats reads by leases or not at all.
func (w *sim) leasesOn() {
	p := w.leader()
	if p == nil || !w.opts.Library.Leased {
		return
	}
	r := p.common()
	r.m.run(func() {
		if err := r.core.(leasedCore).RetireLeases(false); err != nil {
			die("leases are not switched on: %w", err)
		}
		p.work()
	})
}

// probeEvery is the mean time between two reads that nobody waits for.
const probeEvery = 8 * time.Millisecond

// probe reads somewhere, to look at the index alone. Clients wait for their answers, so they
// would not read again and again at a member that is cut off.
func (w *sim) probe() {
	if m := w.someone(); m != nil {
		m.run(func() {
			m.proc.common().ask(command{key: byte(w.faults.IntN(keys))}, func(uint32) {})
			m.proc.work()
		})
	}
}

// someResponders draws the nodes to answer reads: all voters, or some members,
// possibly learners or gone.
func (w *sim) someResponders() []leases.Want {
	if w.faults.Chance(0.5) {
		return []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}
	}
	some := func() (ids []leases.NodeID) {
		for _, m := range w.live() {
			if w.faults.Chance(0.6) {
				ids = append(ids, leases.NodeID(m.id))
			}
		}
		return ids
	}
	if w.opts.Kind == etcdLike {
		return []leases.Want{{Nodes: some()}}
	}
	middle := keySpan(byte(w.faults.IntN(keys))).Start
	return []leases.Want{{Span: leases.Span{End: middle}, Nodes: some()}, {Span: leases.Span{Start: middle}, Nodes: some()}}
}

// leaseReach counts the events of runs with leases.
type leaseReach struct {
	LocalReads, LeaderReads, WaitedReads, HeldReads, Redirected, NoteCommits uint64
	Granted, Revoked, Confirmed, Lapsed, Adopted, Removed, Restored          uint64
	Renamed, Retired, PermitReads                                            uint64
}

// Add adds the counts of another run.
func (r *leaseReach) Add(o leaseReach) { world.AddCounts(r, o) }

// Missing returns the names of what was never reached.
func (r leaseReach) Missing() []string { return world.Zeros(r) }

// String lists the counts, some to a line.
func (r leaseReach) String() string { return world.Table(r) }

// countLeases adds up the counts of a process's leases, at the process's end.
func (m *machine) countLeases() {
	if m.proc == nil || !m.lib.Leased {
		return
	}
	s := m.proc.common().core.(leasedCore).LeaseStatus()
	m.w.leases.Add(leaseReach{
		LocalReads: s.Reads.Local, LeaderReads: s.Reads.Leader, WaitedReads: s.Reads.Waited, HeldReads: s.Reads.Held,
		Redirected: s.Reads.Redirected, NoteCommits: s.Reads.NoteCommits,
		Granted: s.Counts.Granted, Revoked: s.Counts.Revoked, Confirmed: s.Counts.Confirmed, Lapsed: s.Counts.Lapsed,
		Adopted: s.Counts.Adopted, Removed: s.Counts.Removed, Restored: s.Counts.Restored,
	})
	if s.Reads.Refused+s.Counts.Refused > 0 {
		m.w.fail("n%d refuses %d messages about leases", m.id, s.Reads.Refused+s.Counts.Refused)
	}
}
