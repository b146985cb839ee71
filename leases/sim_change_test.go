// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"slices"
)

// wantChange makes a leader change the configuration as soon as it may.
func (m *member) wantChange(c Members) {
	m.wants = &c
	m.lease.WantChange(m.reading(), true)
}

// tryChange appends the change that a leader wants, if it may.
func (m *member) tryChange() {
	if m.wants == nil || m.applied < m.pending || !m.lease.MayChange() {
		return
	}
	c := m.wants
	m.wants = nil
	m.w.reached.Changes++
	if c.joint() {
		m.w.reached.Joints++
	}
	m.w.logf("node %d appends configuration %v at %d", m.id, *c, m.last()+1)
	m.pending = m.last() + 1
	m.propose(entry{conf: c})
	m.lease.ChangeAppended(m.pending)
}

// tryHandOver asks the heir to campaign once leases do not stand in its way, or after a while.
func (m *member) tryHandOver() {
	if m.heir == 0 {
		return
	}
	late := m.reading() >= m.handing
	may := m.lease.MayHandOver(m.heir)
	if !late && (!may || m.match[m.heir] < m.last()) {
		return
	}
	if may {
		m.w.reached.GaveUp++
	}
	term := m.term
	m.w.reached.Transfers++
	m.w.send(m.id, m.heir, func(to *member) {
		if to.term == term {
			to.campaign(true)
		}
	})
	m.heir = 0
	m.later(m.w.set.cfg.ElectionTimeout, func() {
		if m.leads && m.heir == 0 {
			m.lease.HandOver(m.reading(), false, false)
		}
	})
}

// tryRelease lets a responder move its commit index by notes.
func (m *member) tryRelease() {
	q := Releasable{UpTo: m.last(), Durable: min(m.durable, m.matched)}
	if m.matched > 0 && m.termAt(m.matched) == m.term { // terms in a log do not decrease
		at, _ := slices.BinarySearchFunc(m.log[:m.matched], m.term, func(e entry, t Term) int { return cmp.Compare(e.term, t) })
		q.First = Index(at + 1)
	}
	for i := m.applied + 1; i <= m.last() && q.Change == 0; i++ {
		if m.log[i-1].conf != nil {
			q.Change = i
		}
	}
	if k := m.lease.Release(q); k > m.commit {
		m.w.reached.NoteCommits++
		m.w.logf("node %d commits %d by notes", m.id, k)
		m.commitTo(k)
	}
}
