// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// tickedClock is a node's clock as of the last tick, for a planted bug.
type tickedClock struct{ *clock }

// Now implements raft.Clock.
func (c tickedClock) Now() time.Duration {
	return c.origin + time.Duration(c.rate*float64(c.ticked))
}

// localReads returns a member's way of answering reads between turns; nil without leases.
func (m *member) localReads(cfg replica.Config) *replica.LocalReads {
	if m.n.w.opts.Bug == tickedReads && cfg.Clock != nil {
		cfg.Clock = tickedClock{m.n.clock}
	}
	return replica.NewLocalReads(cfg.Settings, m.applied)
}

// publish shows readers what the leases permit after a turn, before anything of the turn
// leaves.
func (m *member) publish() {
	if m.n.w.opts.Bug != latePermit {
		m.local.Publish(m.r)
	}
}

// passTick is the part of a tick that is about reads between turns.
func (m *member) passTick(r *replica.Replica) {
	m.local.Settle(r)
	if m.n.w.opts.Bug == latePermit {
		m.local.Publish(r)
	}
}

// readAtOnce reads by the member's permit, as a goroutine beside its loop, and reports
// whether the permit answers. want is how many commands the state must have at least.
func (m *member) readAtOnce(key uint8, o replica.ReadOptions, want uint64) bool {
	res, ok := m.local.Read(&o)
	if ok {
		m.n.w.reach.PermitReads++
		m.readEnds(key, o, res, want)
	}
	return ok
}

// readEnds checks a read that was answered.
func (m *member) readEnds(key uint8, o replica.ReadOptions, res replica.ReadResult, want uint64) {
	w := m.n.w
	w.reach.countRead(res.By)
	if m.state.applied < want {
		w.fail(fresh, "group %d: %v answers a read of key %d (%T, served by %v) with %d commands applied, and a write at %d was acknowledged before",
			m.g.id, m.n, key, o.Policy, res.By, m.state.applied, want)
	}
}
