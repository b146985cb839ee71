// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

// publish shows readers of a member what its leases permit. It ends an event, so that nothing
// that left the member during the event has arrived anywhere.
func (m *member) publish() {
	if !m.alive || m.paused {
		return
	}
	was := m.permit
	m.permit = m.lease.Permit(was)
	switch {
	case m.permit == nil && was != nil:
		m.w.reached.Withdrawn++
	case m.permit != nil && m.permit != was:
		m.w.reached.Permits++
	}
	m.checkPermit()
}

// checkPermit checks that a new permit allows no read that the leases would refuse.
func (m *member) checkPermit() {
	now := m.reading()
	for k := range keyCount {
		if _, ok := m.permit.ReadIndex(now, keyOf(k)); ok && !m.lease.IsStable(now, keyOf(k)) {
			m.w.fail("Permits", "node %d publishes a permit for key %d, and is not stable", m.id, k)
		}
	}
}

// askByPermit has clients read each key, and then all keys, at a member by its permit. Such
// readers go on while the member's own work stands still: the clock and the applied
// state are what they see.
func (w *world) askByPermit(m *member) {
	if !m.alive {
		return
	}
	for k := range keyCount + 1 {
		r, spans := read{keys: 1<<keyCount - 1, fresh: w.fresh}, []Span(nil)
		if k < keyCount {
			r.keys, spans = 1<<k, []Span{keyOf(k)}
		}
		i, ok := m.permit.ReadIndex(m.reading(), spans...)
		switch {
		case !ok:
			continue
		case i > m.applied:
			w.reached.PermitWaits++
			continue
		case m.paused:
			w.reached.PausedReads++
		}
		w.reached.PermitReads++
		r.index = i
		w.answers(m, r)
	}
}
