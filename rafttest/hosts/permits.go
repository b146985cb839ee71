// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// processClock is the clock of a process. The leases of the process, if on, go by the same clock.
type processClock struct {
	raft.Clock
	leases raft.Clock
}

// permittingCore is a core with permits: a permit names the reads that need no message.
type permittingCore interface {
	LeasePermit(former *leases.Permit) *leases.Permit
}

// publish shows readers what the leases permit, before a Ready is dealt with.
func (r *replica) publish() {
	if core, ok := r.core.(permittingCore); ok {
		r.permit = core.LeasePermit(r.permit)
	}
}

// readAtOnce answers a read without a word to the core, if the permit of the last Ready covers
// the keys, and reports whether it does.
func (r *replica) readAtOnce(q reading, spans []leases.Span) bool {
	if r.permit == nil {
		return false
	}
	index, ok := r.permit.ReadIndex(leases.InstantOf(r.clock.leases.Now()), spans...)
	if !ok || uint64(index) > r.state.at.index {
		return false
	}
	r.w.leases.PermitReads++
	r.w.reach.Reads++
	r.checkFresh(q, uint64(index))
	q.done(r.state.values[q.key])
	return true
}
