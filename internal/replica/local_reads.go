// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// LocalReads answers linearizable reads by roster leases without the replica, at the
// goroutine that asks. A turn of the replica costs many times as much as such an answer.
//
// The replica's driver publishes what the leases permit after each turn; the state machine's
// driver says how far it has applied; and a read is answered if the permit covers its keys and
// has not ended, and all that the read has to see is applied. Every other read is left to the
// replica.
//
// Invariant: Publish comes after Flush, and before anything of that turn's Output leaves the
// driver: a message, a write to the log, a step of the state machine, the end of a call.
// What a client has seen by the time of its read is therefore behind a Publish. Between a
// Flush and its Publish a read may rest on the former permit, as if it had come before the
// turn.
//
// The methods may be called from several goroutines, Publish and Settle from one at a time.
// The nil LocalReads answers nothing.
type LocalReads struct {
	clock   raft.Clock
	permit  atomic.Pointer[leases.Permit]
	applied atomic.Uint64
	closed  atomic.Bool

	roster, lease atomic.Uint64 // reads answered since the last Settle

	mu    sync.Mutex
	spans map[leases.Span]uint32 // of these reads, for a tuner
}

// maxTunedSpans bounds the spans that are counted between two Settles. Of further spans nothing
// is counted.
const maxTunedSpans = 1024

// NewLocalReads returns the local reads of a replica with leases, or nil for one without. The
// clock is that of the replica, and the state machine has applied the log up to an index.
func NewLocalReads(s Settings, applied uint64) *LocalReads {
	if s.Leases == nil || s.Clock == nil {
		return nil
	}
	l := &LocalReads{clock: s.Clock}
	l.applied.Store(applied)
	return l
}

// Publish shows readers what the leases of a replica permit since its last Flush.
func (l *LocalReads) Publish(r *Replica) {
	if l == nil {
		return
	}
	former := l.permit.Load()
	permit := r.Permit(former)
	if permit != former {
		l.permit.Store(permit)
	}
}

// Permit returns the newest published permit, or nil.
func (l *LocalReads) Permit() *leases.Permit { return l.permit.Load() }

// Close has every read that comes later left to the replica, whatever is published.
func (l *LocalReads) Close() {
	if l != nil {
		l.closed.Store(true)
	}
}

// Applied says up to which index of the log readers of the state machine see its effects.
func (l *LocalReads) Applied(index uint64) {
	if l != nil {
		l.applied.Store(index)
	}
}

// Read answers a read, or reports that the replica has to.
//
// Invariant: the clock is read after the permit was loaded. A turn, or a pause, between the
// two shows in the clock.
func (l *LocalReads) Read(o *ReadOptions) (ReadResult, bool) {
	if l == nil || l.closed.Load() {
		return ReadResult{}, false
	}
	permit := l.permit.Load()
	if permit == nil || !o.leaseServes(permit.Leads) {
		return ReadResult{}, false
	}
	now := leases.InstantOf(l.clock.Now())
	index, ok := permit.ReadIndex(now, o.Spans...)
	if !ok || uint64(index) > l.applied.Load() {
		return ReadResult{}, false
	}
	if permit.Tuned {
		l.note(o.Spans)
	}
	if permit.Leads {
		l.lease.Add(1)
		return ReadResult{Index: uint64(index), By: ServedByLease}, true
	}
	l.roster.Add(1)
	return ReadResult{Index: uint64(index), By: ServedByRoster}, true
}

// leaseServes reports whether the policy takes the answer of this node's own lease: at any
// node, or at the leader.
func (o *ReadOptions) leaseServes(leads bool) bool {
	switch o.Policy.(type) {
	case nil, ReadIndex, AtResponder:
		return true
	case LeaderLease:
		return leads
	}
	return false
}

// note counts a read for the tuner.
func (l *LocalReads) note(spans []leases.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spans == nil {
		l.spans = map[leases.Span]uint32{}
	}
	if len(spans) == 0 {
		l.noteSpan(leases.Span{})
	}
	for _, s := range spans {
		l.noteSpan(s)
	}
}

func (l *LocalReads) noteSpan(s leases.Span) {
	n, known := l.spans[s]
	if n < math.MaxUint32 && (known || len(l.spans) < maxTunedSpans) {
		l.spans[s] = n + 1
	}
}

// Settle tells a replica which reads were answered since the last Settle: for its counters, and
// for the tuner.
func (l *LocalReads) Settle(r *Replica) {
	if l == nil {
		return
	}
	roster, lease := l.roster.Swap(0), l.lease.Swap(0)
	if roster+lease == 0 {
		return
	}
	r.count.Reads += roster + lease
	r.count.ReadsByRoster += roster
	r.count.ReadsByLease += lease
	r.count.ReadsByPermit += roster + lease
	r.leasing.core.CountPermittedReads(roster, lease, l.tuned())
}

// tuned takes what was counted for the tuner, in the order of spans.
func (l *LocalReads) tuned() []leases.Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spans) == 0 {
		return nil
	}
	list := make([]leases.Usage, 0, len(l.spans))
	for s, n := range l.spans {
		list = append(list, leases.Usage{Span: s, Reads: n})
	}
	clear(l.spans)
	slices.SortFunc(list, func(a, b leases.Usage) int {
		return cmp.Or(strings.Compare(a.Span.Start, b.Span.Start), strings.Compare(a.Span.End, b.Span.End))
	})
	return list
}

// Permit returns what the leases permit now, given the last result or nil: nothing, if the
// replica is out of service.
func (r *Replica) Permit(former *leases.Permit) *leases.Permit {
	if r.err != nil || r.leasing.core == nil {
		return nil
	}
	return r.leasing.core.LeasePermit(former)
}
