// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"time"
)

// The model's Raft: elections, replication by acknowledged indexes, joint
// configuration changes, transfers. Nothing that vouches leaves before the disk
// has it.

func (m *member) last() Index { return Index(len(m.log)) }

func (m *member) termAt(i Index) Term {
	if i == 0 || i > m.last() {
		return 0
	}
	return m.log[i-1].term
}

// vouch runs send once all that is in memory now is on disk.
func (m *member) vouch(send func()) {
	m.dirty = true
	m.vouches = append(m.vouches, send)
}

// flushDisk writes what is in memory to disk, if nothing is being written.
func (m *member) flushDisk() {
	if !m.dirty || m.syncing || m.stuck {
		return
	}
	m.dirty, m.syncing = false, true
	d := disk{term: m.term, vote: m.vote, log: slices.Clip(m.log), commit: m.commit}
	vouches := m.vouches
	m.vouches = nil
	life := m.life
	m.w.after(m.w.upTo(2*m.w.set.sync*time.Duration(1+m.limps)), func() {
		if m.life != life {
			return
		}
		m.disk = d
		m.receive(func() {
			m.syncing = false
			m.lease.TermDurable(d.term)
			if d.term == m.term {
				m.durable = Index(len(d.log))
				if m.leads {
					m.match[m.id] = m.durable
					m.lease.Acknowledged(m.reading(), m.id, m.durable)
				}
			}
			for _, send := range vouches {
				send()
			}
			m.sendNotes()
		})
	})
}

// enter makes the member follow in a term.
func (m *member) enter(t Term, lead NodeID) {
	if t != m.term {
		m.term, m.vote, m.matched, m.durable = t, 0, 0, 0
		m.dirty = true
	}
	if m.leads {
		m.w.logf("node %d leads no more", m.id)
	}
	m.lead, m.leads, m.runs, m.wants, m.heir = lead, false, false, nil, 0
	m.lease.Turned(m.reading(), Turn{Term: t, Leader: lead})
}

// campaign makes the member a candidate.
func (m *member) campaign(transfer bool) {
	w, now := m.w, m.reading()
	m.heard, m.patient = now, w.between(w.set.cfg.ElectionTimeout, 2*w.set.cfg.ElectionTimeout)
	if w.set.meek && m.id != w.set.first || !m.conf.Voters.has(m.id) || m.leads || !m.lease.MayCampaign(now) {
		return
	}
	for i := m.applied + 1; i <= m.commit; i++ {
		if m.log[i-1].conf != nil {
			return // it does not know its configuration
		}
	}
	m.enter(m.term+1, 0)
	m.runs, m.vote, m.votes = true, m.id, map[NodeID]bool{}
	w.logf("node %d campaigns at term %d", m.id, m.term)
	term, last, lastTerm := m.term, m.last(), m.termAt(m.last())
	m.vouch(func() {
		m.voted(term, m.id)
		for _, id := range m.conf.Voters.clone().both() {
			if id != m.id {
				w.send(m.id, id, func(to *member) { to.asked(term, m.id, last, lastTerm, transfer) })
			}
		}
	})
}

func (v Voters) both() []NodeID { return ascending(v.Incoming, v.Outgoing) }

// asked answers a candidate.
func (m *member) asked(term Term, from NodeID, last Index, lastTerm Term, transfer bool) {
	now := m.reading()
	hears := m.leads || m.lead != 0 && now.since(m.heard) < m.w.set.cfg.ElectionTimeout
	if term < m.term || hears && !transfer && !m.w.set.forced {
		return
	}
	if term > m.term {
		m.enter(term, 0)
	}
	newer := lastTerm > m.termAt(m.last()) || lastTerm == m.termAt(m.last()) && last >= m.last()
	if m.vote != 0 && m.vote != from || m.lead != 0 || !newer {
		return
	}
	if !m.lease.MayVote(now, from) {
		return
	}
	m.vote = from
	m.heard = now
	m.vouch(func() {
		m.w.send(m.id, from, func(to *member) { to.voted(term, m.id) })
	})
}

// voted counts a vote.
func (m *member) voted(term Term, from NodeID) {
	if term != m.term || !m.runs {
		return
	}
	m.votes[from] = true
	if !m.conf.majority(func(v NodeID) bool { return m.votes[v] }) {
		return
	}
	m.leads, m.runs, m.lead = true, false, m.id
	m.match, m.sentTo, m.beat = map[NodeID]Index{}, map[NodeID]Index{}, 0
	m.first, m.pending = m.last()+1, m.last()+1
	m.w.logf("node %d leads at term %d, log from %d", m.id, term, m.first)
	m.w.reached.Leaders++
	m.w.checkElected(m)
	m.lease.Turned(m.reading(), Turn{Term: term, Leader: m.id, First: m.first})
	m.propose(entry{})
}

// propose appends an entry at a leader.
func (m *member) propose(e entry) {
	m.w.entries++
	e.term, e.id = m.term, m.w.entries
	m.log = append(m.log, e)
	m.appended(m.last())
	m.matched = m.last()
	m.vouch(func() {})
	m.broadcast()
	for _, span := range e.spans() {
		m.lease.CountWrite(span)
	}
}

// appended tells the leases of the entries from an index on.
func (m *member) appended(first Index) {
	e := Entries{First: first, Count: int(m.last() + 1 - first), Keys: func(i Index) []Span { return m.log[i-1].spans() }}
	if m.leads {
		e.At = m.reading()
	}
	m.lease.Appended(e)
}

func (m *member) broadcast() {
	for _, id := range m.conf.all() {
		if id != m.id {
			m.sendAppend(id)
		}
	}
}

// sendAppend sends what a member has not acknowledged.
func (m *member) sendAppend(to NodeID) {
	from := min(m.match[to], m.last())
	if from == 0 && m.sentTo[to] > 0 {
		from = m.sentTo[to] - 1 // where it said that its log ends
	}
	ents := slices.Clip(m.log[from:min(m.last(), from+32)]) // what a log once had stays in its memory
	term, prevTerm, commit, id := m.term, m.termAt(from), m.commit, m.id
	m.w.carry(id, to, m.w.bulk[id][to], func(f *member) { f.append(term, id, from, prevTerm, ents, commit) })
}

// append takes entries of a leader.
func (m *member) append(term Term, from NodeID, prev Index, prevTerm Term, ents []entry, commit Index) {
	if term < m.term {
		t := m.term
		m.w.send(m.id, from, func(to *member) { to.nack(t, m.id, 0) })
		return
	}
	if term > m.term || m.lead != from {
		m.enter(term, from)
	}
	now := m.reading()
	m.heard = now
	m.lease.Heard(now)
	if prev > m.last() || m.termAt(prev) != prevTerm {
		hint := min(m.last(), prev-1)
		m.w.send(m.id, from, func(to *member) { to.nack(term, m.id, hint+1) })
		return
	}
	for i, e := range ents {
		at := prev + Index(i) + 1
		if at <= m.last() && m.log[at-1].id == e.id {
			continue
		}
		if at <= m.last() {
			if at <= m.commit {
				m.w.fail("Log", "node %d cuts its log at %d, committed %d", m.id, at, m.commit)
				return
			}
			m.truncate(at - 1)
		}
		m.log = append(m.log, e)
		m.appended(at)
		m.dirty = true
	}
	end := prev + Index(len(ents))
	m.matched = max(m.matched, end)
	m.commitTo(min(commit, end))
	ack := func() {
		m.w.send(m.id, from, func(to *member) { to.ack(term, m.id, end) })
	}
	if m.durable >= end && m.disk.term == term {
		ack()
	} else {
		m.vouch(func() {
			if m.term == term {
				ack()
			}
		})
	}
}

// truncate cuts the log. Reads that wait for what is cut go to the leader.
func (m *member) truncate(last Index) {
	m.log = slices.Clone(m.log[:last])
	m.durable = min(m.durable, last)
	m.lease.Truncated(last)
	m.reads = slices.DeleteFunc(m.reads, func(r read) bool {
		if r.index > last {
			m.w.reached.CutReads++
		}
		return r.index > last
	})
}

func (m *member) nack(term Term, from NodeID, next Index) {
	switch {
	case term > m.term:
		m.enter(term, 0)
	case term == m.term && m.leads && next > 0 && m.match[from] == 0:
		m.sentTo[from] = next
		m.sendAppend(from)
	}
}

func (m *member) ack(term Term, from NodeID, index Index) {
	if term != m.term || !m.leads {
		return
	}
	if index > m.match[from] {
		m.match[from] = index
		m.lease.Acknowledged(m.reading(), from, index)
		if index < m.last() {
			m.sendAppend(from)
		}
	}
}

// maybeCommit commits what a majority holds, and what leases let it.
func (m *member) maybeCommit() {
	k := m.conf.Voters.committed(func(v NodeID) Index { return m.match[v] })
	if k <= m.commit || m.termAt(k) != m.term {
		return
	}
	if m.published != nil {
		k = m.published(k)
	} else {
		k = m.lease.Committable(k)
	}
	if k > m.commit && m.termAt(k) == m.term {
		m.commitTo(k)
	}
}

// commitTo moves the commit index on.
func (m *member) commitTo(k Index) {
	if k <= m.commit {
		return
	}
	for i := m.commit + 1; i <= k; i++ {
		m.w.commits(m, i, m.log[i-1])
	}
	m.commit = k
	m.dirty = true
	m.lease.Committed(k)
	if lag := m.w.set.applyLag; lag > 0 && m.w.chance(0.3) {
		m.later(m.w.upTo(lag), func() { m.applyTo(k) })
	} else {
		m.applyTo(k)
	}
}

// applyTo applies committed entries, and answers the reads that waited for them.
func (m *member) applyTo(k Index) {
	k = min(k, m.commit)
	if k <= m.applied || m.slowApply {
		return
	}
	for i := m.applied + 1; i <= k; i++ {
		if c := m.log[i-1].conf; c != nil {
			m.conf = *c
			m.lease.Configured(m.reading(), *c)
		}
	}
	m.applied = k
	m.lease.Applied(k)
	m.reads = slices.DeleteFunc(m.reads, func(r read) bool {
		if r.index <= k {
			m.w.answers(m, r)
		}
		return r.index <= k
	})
	if m.leads && m.conf.joint() && m.pending <= m.applied && m.wants == nil {
		c := Members{Voters: Voters{Incoming: m.conf.Incoming}, Learners: m.conf.Learners}
		for _, id := range m.conf.Outgoing {
			if !c.has(id) {
				c.Learners = ascending(c.Learners, []NodeID{id}) // it stays, and may be made a voter again
			}
		}
		m.wantChange(c)
	}
}

// sendNotes tells responders how far this member holds the log of its term.
func (m *member) sendNotes() {
	x, to := m.lease.OwnNote(min(m.durable, m.matched))
	if m.disk.term != m.term {
		return
	}
	data := AppendNote(nil, x)
	from := m.id
	for _, id := range to {
		m.w.send(from, id, func(to *member) {
			x, err := ParseNote(data)
			if err == nil {
				err = to.lease.StepNote(from, x)
			}
			if err != nil {
				to.w.fail("Messages", "note of %d to %d: %v", from, to.id, err)
			}
		})
	}
}
