// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// advance moves the commit index as far as the answers allow.
func (m *model) advance() {
	before := m.committed
	for m.step() {
	}
	for i := len(m.carriers) - 1; i >= 0; i-- {
		if c := m.carriers[i]; c > m.committed && m.committable(c) {
			m.commit(c)
			for m.step() {
			}
			break
		}
	}
	if m.committed == before {
		return
	}
	m.carriers = slices.DeleteFunc(m.carriers, func(c uint64) bool { return c <= m.committed })
	if m.observer != nil {
		m.observer.Committed(m.committed)
	}
	m.retry = 0
	m.arm()
}

// step commits the next entry, if the entry may commit without later entries.
func (m *model) step() bool {
	next := m.committed + 1
	if next > uint64(len(m.log)) || !m.majority(next) || !m.covered(next, next) {
		return false
	}
	m.commit(next)
	return true
}

func (m *model) commit(to uint64) {
	for m.committed < to {
		m.committed++
		if m.log[m.committed-1].size == 0 {
			continue // a carrier
		}
		if m.usage.Acked++; m.atRisk(m.committed) {
			m.usage.AtRisk++
		}
		if m.onCommit != nil {
			m.onCommit(m.committed, m.now)
		}
	}
}

// committable reports whether all entries up to k may commit, with the riders up to k.
func (m *model) committable(k uint64) bool {
	if !m.majority(k) {
		return false
	}
	for e := m.committed + 1; e <= k; e++ {
		if !m.covered(e, k) {
			return false
		}
	}
	return true
}

// answers counts the members that hold the log up to an index, the leader included.
func (m *model) answers(index uint64) int {
	n := 1
	for _, f := range m.followers {
		if f.match >= index {
			n++
		}
	}
	return n
}

func (m *model) majority(index uint64) bool { return m.answers(index) > m.n/2 }

// covered reports whether the received answers cover an entry, with the riders up to k.
func (m *model) covered(index, k uint64) bool {
	e := &m.log[index-1]
	if e.need > 0 {
		// An entry that was sent again whole needs a majority of the second time.
		again := slices.ContainsFunc(e.riders, func(r rider) bool { return r.carrier <= k && m.majority(r.carrier) })
		return again || m.answers(index) >= e.need
	}
	if e.size == 0 {
		return true // a carrier has no payload
	}
	held := make([]int, 1, maxFollowers+1)
	held[0] = e.layout.D
	for i := range m.followers {
		held = append(held, m.held(i, e, index, k))
	}
	return ecraft.Covered(e.layout.D, (m.n+1)/2, held)
}

// held is the number of units of an entry that a follower is known to hold.
func (m *model) held(i int, e *entry, index, k uint64) int {
	f := m.followers[i]
	if f.match < index {
		return 0
	}
	h := int(e.units[i])
	for _, r := range e.riders {
		if r.carrier <= k && f.match >= r.carrier {
			h = max(h, int(r.units[i]))
		}
	}
	return h
}

// arm sets the timer for the oldest entry that is not committed.
func (m *model) arm() {
	if m.committed == uint64(len(m.log)) {
		return
	}
	at := max(m.now, min(m.due(), m.lostAt()), m.retry)
	if at < m.alarm {
		m.alarm = at
		m.add(event{at: at, kind: hedgeAt})
	}
}

const never = time.Duration(1<<63 - 1)

// due is the time at which the oldest entry is late.
func (m *model) due() time.Duration {
	e := &m.log[m.committed]
	if m.side.Detect > 0 {
		return e.at + m.side.Detect
	}
	if after := ecraft.HedgeAfter(e.plan); after > 0 {
		return e.at + after
	}
	return e.at + unhealthy
}

// lostAt is the time at which a follower that the oldest entry waits for has been silent for so
// long that the follower counts as lost.
func (m *model) lostAt() time.Duration {
	e := &m.log[m.committed]
	at := never
	for i, f := range m.followers {
		if e.plan.Silence > 0 && e.units[i] > 0 && f.match <= m.committed {
			at = min(at, max(f.spoke, e.at+e.plan.Predicted)+e.plan.Silence)
		}
	}
	return at
}

// lost reports whether a follower that owes an answer for an entry counts as lost.
func (m *model) lost(f *follower, e *entry) bool {
	return e.plan.Silence > 0 && m.now-max(f.spoke, e.at+e.plan.Predicted) >= e.plan.Silence
}

// hedge acts when the oldest entry is late: hedge raises, at the followers that are not late, every
// entry that would not commit without the late followers.
func (m *model) hedge() {
	if m.committed == uint64(len(m.log)) {
		return
	}
	if m.now < max(min(m.due(), m.lostAt()), m.retry) {
		m.arm()
		return
	}
	first := m.committed + 1
	e := &m.log[first-1]
	t := max(e.plan.Predicted, ms)
	// The followers that answered or, if a follower is lost, the followers that are not lost.
	there, tokens := func(i int) bool { return m.followers[i].match >= first }, m.tokens
	answering := e.plan.Silence > 0 && m.now < m.lostAt()
	if ecraft.HedgeWaived(e.plan, m.now-e.at, answering) || m.side.Detect > 0 {
		tokens = math.Inf(1)
	} else if m.now < m.due() {
		tokens /= 2
		there = func(i int) bool {
			f := m.followers[i]
			return f.match >= first || !m.lost(f, e)
		}
	}
	level := 1 - m.n/2
	for i := range m.followers {
		if there(i) {
			level++
		}
	}
	if m.general != nil {
		level = min(level, 1) // a late entry is sent again, whole
	}
	switch {
	case m.covered(first, uint64(len(m.log))):
		m.retry = m.now + t // a carrier is on its way
	case level < 1:
		m.retry = m.now + t/4
	case m.side.Detect == 0 && m.takesItsTime(first, t):
		m.retry = m.now + t
	default:
		m.carry(first, min(level, ecraft.Levels(m.n)), there, tokens)
		m.retry = m.now + t
	}
	m.arm()
}

// takesItsTime reports whether an entry is late because of a queue: the answers still expected
// would be enough, and their followers go on answering.
func (m *model) takesItsTime(first uint64, pace time.Duration) bool {
	e := &m.log[first-1]
	held := append(make([]int, 0, maxFollowers+1), e.layout.D)
	n := 1
	for i, f := range m.followers {
		units := 0
		if f.match >= first || m.now-f.spoke < pace && !m.lost(f, e) {
			n++
			units = int(e.units[i])
			for _, r := range e.riders {
				units = max(units, int(r.units[i]))
			}
		}
		held = append(held, units)
	}
	return !ecraft.HedgeWaived(e.plan, m.now-e.at, true) && n > m.n/2 && ecraft.Covered(e.layout.D, (m.n+1)/2, held)
}

// carry appends a carrier that raises all entries from first on to a level, at the followers
// selected by there, unless the riders have more bytes than tokens.
func (m *model) carry(first uint64, level int, there func(i int) bool, tokens float64) {
	carrier := uint64(len(m.log)) + 1
	c := entry{at: m.now, layout: m.layout}
	for i := range c.bytes {
		c.bytes[i] = messageBytes
	}
	var total int64
	var raised []rider
	for index := first; index < carrier; index++ {
		e := &m.log[index-1]
		if e.size == 0 {
			continue
		}
		r := rider{carrier: carrier, entry: index}
		want := e.layout.UnitsAt(level)
		unit := (e.size+e.layout.D-1)/e.layout.D + unitBytes
		for i := range m.followers {
			have := int(e.units[i])
			if m.general != nil {
				have = 0
			}
			for _, x := range e.riders {
				have = max(have, int(x.units[i]))
			}
			if !there(i) || have >= want {
				continue
			}
			r.units[i] = uint8(want)
			bytes := (want - int(e.units[i])) * unit
			if m.general != nil {
				bytes = e.size
			}
			c.bytes[i] += int32(bytes)
			total += int64(bytes)
		}
		if r.units != (shares{}) {
			raised = append(raised, r)
		}
	}
	if len(raised) == 0 || float64(total) > tokens {
		return
	}
	for _, r := range raised {
		e := &m.log[r.entry-1]
		e.riders = append(e.riders, r)
	}
	m.tokens = max(0, m.tokens-float64(total))
	m.usage.Hedged += total
	m.usage.Hedges++
	m.carriers = append(m.carriers, carrier)
	m.append(c)
}
