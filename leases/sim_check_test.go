// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// commits takes that a member has committed an entry.
func (w *world) commits(m *member, i Index, e entry) {
	switch {
	case int(i) <= len(w.chosen):
		if w.chosen[i-1].id != e.id {
			w.fail("Safety", "node %d commits %+v at %d, where %+v is committed", m.id, e, i, w.chosen[i-1])
		}
		return
	case int(i) != len(w.chosen)+1:
		w.fail("Safety", "node %d commits %d, and %d is the last that is committed", m.id, i, len(w.chosen))
		return
	}
	w.chosen = append(w.chosen, e)
	w.reached.Commits++
	w.logf("node %d commits %d (%d of term %d, keys %b)", m.id, i, e.id, e.term, e.keys)
	for k := range keyCount {
		if e.writes(k) {
			w.checkLacking(i, e, k)
			w.fresh[k] = i
		}
	}
}

// checkLacking checks that nobody who would answer a read of the key lacks the write.
func (w *world) checkLacking(i Index, e entry, k int) {
	for _, p := range w.members {
		if p.alive && (p.last() < i || p.log[i-1].id != e.id) && p.lease.IsStable(p.reading(), keyOf(k)) {
			w.fail("Covered", "entry %d commits, and node %d, which would answer reads of key %d, does not have it", i, p.id, k)
		}
	}
}

// checkElected checks that nobody would still answer reads in an earlier term.
func (w *world) checkElected(m *member) {
	for _, p := range w.members {
		for k := range keyCount {
			if p.alive && p != m && p.term < m.term && p.lease.IsStable(p.reading(), keyOf(k)) {
				w.fail("Bound", "node %d leads at term %d, and node %d would answer reads of key %d at term %d", m.id, m.term, p.id, k, p.term)
			}
		}
	}
}

// checkKept checks that the leases counted by a member are promises kept by others.
func (w *world) checkKept(m *member) {
	for _, p := range m.lease.peers {
		g := w.member(p.id)
		if 0 < p.promise.until && p.promise.until < m.reading() && m.reading().since(p.promise.until) < 2*w.set.tick {
			w.reached.Expired++
		}
		if !g.alive || p.holding.until <= m.reading() {
			continue
		}
		q := g.lease.peer(m.id)
		if g.lease.restart.until <= g.reading() && (q == nil || q.promise.until <= g.reading()) {
			w.fail("Kept", "node %d counts a lease of node %d, which keeps no promise to it", m.id, g.id)
		}
	}
}

// checkAgreed checks that the leader of a responder's term waits for it, and that
// nobody leads in a later term, while it would answer reads of a key.
func (w *world) checkAgreed(p *member) {
	k := w.rng.IntN(keyCount)
	if p.leads || !p.lease.IsStable(p.reading(), keyOf(k)) {
		return
	}
	for _, l := range w.members {
		if !l.alive || !l.leads || l.term < p.term {
			continue
		}
		if l.term > p.term {
			w.fail("Bound", "node %d leads at term %d, and node %d would answer reads of key %d at term %d", l.id, l.term, p.id, k, p.term)
			return
		}
		waits := func(r *Roster) bool {
			_, serves := r.serves(p.id, keyOf(k))
			return serves && !l.lease.isSuperseded(r)
		}
		if !slices.ContainsFunc(l.lease.rosters.list, waits) {
			w.fail("Agreed", "node %d would answer reads of key %d, and its leader, node %d, does not wait for it", p.id, k, l.id)
		}
	}
}

// ask has a client read some keys at a member.
func (w *world) ask(m *member) {
	if !m.alive || m.paused {
		return
	}
	r := read{fresh: w.fresh}
	var spans []Span
	switch k := w.rng.IntN(keyCount + 2); k {
	case keyCount:
		r.keys = 1<<keyCount - 1
	case keyCount + 1:
		r.keys, spans = 1|1<<2, []Span{keyOf(0), keyOf(2)}
	default:
		r.keys, spans = 1<<k, []Span{keyOf(k)}
	}
	for _, s := range spans {
		m.lease.CountRead(s)
	}
	i, ok := m.lease.ReadIndex(m.reading(), spans...)
	if !ok {
		return
	}
	switch {
	case m.leads:
		w.reached.LeaderReads++
	default:
		w.reached.LocalReads++
		if !m.conf.Voters.has(m.id) {
			w.reached.LearnerReads++
		}
	}
	r.index = i
	if m.applied >= i {
		w.answers(m, r)
		return
	}
	w.reached.HeldReads++
	m.reads = append(m.reads, r)
}

// answers answers a read from the state that a member has applied.
func (w *world) answers(m *member, r read) {
	for k := range keyCount {
		if r.keys&(1<<k) == 0 {
			continue
		}
		value := m.applied
		for value > 0 && !m.log[value-1].writes(k) {
			value--
		}
		if value < r.fresh[k] {
			w.fail("Fresh", "node %d answers a read of key %d at term %d with the write at %d; when the read began the one at %d was acknowledged or read",
				m.id, k, m.term, value, r.fresh[k])
		}
	}
}
