// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

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

// leasedCore is what a core with leases has beside the rest.
type leasedCore interface {
	LeaseStatus() raft.LeaseStatus
	SetResponders(wanted []leases.Want, tuner ...leases.TunerMode) error
	RetireLeases(retire bool) error
}

// processClock is the clock of a process. The leases of the process, if on, go by the same clock.
type processClock struct {
	raft.Clock
	leases raft.Clock
}
