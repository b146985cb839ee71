// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"fmt"
	"time"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// facts are what every part of a [Replica] or of a [Gateway] may look at: the settings, the
// time, and how far the core, the log and the state machine are. A part has facts, its own
// state, and a few methods of what is around it.
//
// Invariant: parts change the counters, an inquiry forgets who was heard, and stalling sets stalled; all else is
// changed by the Replica or the Gateway alone.
type facts struct {
	cfg   Config
	count Counters
	now   time.Duration // as of the last Tick or Flush
	ticks uint64

	// The next fields are a replica's. A gateway has no core, no log and no state machine.

	state CoreState // of the core, after the last drain
	core  coreView  // asked for what the core has not told: its present state, and its members
	// stalled is the reason why the log or the state machine does not get on, or nil; wraps storage.ErrLate if the
	// disk is late. See stalling.
	stalled error
	// ledSince is the tick since which this node leads, if this node leads.
	ledSince uint64
	heard    map[uint64]uint64 // by node: the tick of its last message
	// last is the end of the log: entries handed to the append stage, and
	// proposals that the core has appended and not handed out yet.
	last uint64
	// host is as of the last entry handed to the apply stage, or of a snapshot that the state
	// machine has restored, if the snapshot is ahead of the entry.
	host *hostState
	// emitted is the last entry handed to the apply stage.
	emitted logMark
	// applied is as of the last ApplyDone, or of a restored snapshot: what
	// readers of the state machine see, and what followers are sent.
	applied stateMark
}

// coreView is what parts may ask a core.
type coreView interface {
	State() CoreState
	Members() (tracker.Config, map[uint64]tracker.Progress)
}

// leads reports whether this node is the leader, to its own knowledge.
func (f *facts) leads() bool { return f.state.Role == raft.StateLeader }

// reachable reports whether this node has heard of another within an election
// timeout. (A core's own note of that is cleared from time to time.)
func (f *facts) reachable(id uint64) bool {
	at, ok := f.heard[id]
	return id == f.cfg.ID || ok && f.ticks-at <= uint64(f.cfg.ElectionTick)
}

// cannotWrite returns why this node takes nothing new, or nil.
func (f *facts) cannotWrite() error {
	if f.stalled == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStalled, f.stalled)
}

// tooEarly reports whether this node leads and has not committed an entry of its
// term. More may be committed then than it knows. Cores wait by themselves, but
// upstream's does not where the leader is the only voter.
func (f *facts) tooEarly() bool { return f.leads() && f.emitted.term != f.state.Term }

// eagerEvery bounds what waits for what is under way to end: a batch leaves so long after the last
// one, and a round of reads begins so long after the last one. Each costs all members about the same,
// however little it has. So the time is longer at a gateway, which knows nothing of members'
// processors, and while processors are busy, unless ticks are shorter. Rejected for busy processors: a tick. Where disks
// are slow a round lasts longer than this, so that it costs processors little beside its commands, and a call that waits
// for two rounds takes twice as long.
const (
	eagerEvery  = 2 * time.Millisecond
	gatewayWait = 8 * time.Millisecond
	busyEvery   = 8 * time.Millisecond
	busyFrom    = 0.75 // share of processors
)

// moment is how long a batch or a round of reads waits at most for what is under way.
func (f *facts) moment() time.Duration {
	if f.busy() {
		return max(min(f.cfg.Tick, busyEvery), eagerEvery)
	}
	return cmp.Or(f.cfg.Moment, eagerEvery)
}

// busy reports whether processors are busy.
func (f *facts) busy() bool { return f.cfg.Busy != nil && f.cfg.Busy() >= busyFrom }

// stamp is a time by two clocks: that of inputs, and Config.Aging, which counts while the system is suspended.
type stamp struct{ now, aging time.Duration }

func (f *facts) stamp() stamp {
	m := stamp{now: f.now}
	if f.cfg.Aging != nil {
		m.aging = f.cfg.Aging()
	}
	return m
}

// ago returns how long ago m was, by the clock that says more.
func (f *facts) ago(m stamp) time.Duration {
	at := f.stamp()
	return max(at.now-m.now, at.aging-m.aging)
}
