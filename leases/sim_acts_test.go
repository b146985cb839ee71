// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"time"
)

// disturb plans the acts of a run.
func (w *world) disturb() {
	w.phase()
	w.load()
	w.after(w.upTo(200*time.Millisecond), w.act)
	w.retune()
	w.doubt()
	w.limp()
}

// phase draws how much clients write for a while: often nothing.
func (w *world) phase() {
	w.busy = []float64{0, 0.02, 0.1, 0.5}[w.rng.IntN(4)]
	w.after(w.between(20*time.Millisecond, 300*time.Millisecond), w.phase)
}

// load has clients write and read.
func (w *world) load() {
	if l := w.leader(); w.chance(w.busy) && l != nil && !l.paused {
		e := entry{keys: 1 << w.rng.IntN(keyCount), told: w.set.spans && w.chance(0.9)}
		if w.chance(0.1) {
			e.keys |= 1 << w.rng.IntN(keyCount)
		}
		l.propose(e)
		l.flush()
	}
	m := w.pick()
	w.ask(m)
	w.askByPermit(m)
	w.after(w.between(500*time.Microsecond, 3500*time.Microsecond), w.load)
}

func (w *world) pick() *member { return w.members[w.rng.IntN(len(w.members))] }

// leader returns a member that thinks it leads, or nil.
func (w *world) leader() *member {
	var list []*member
	for _, m := range w.members {
		if m.alive && m.leads {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

// act does one thing to the group and plans the next.
func (w *world) act() {
	if w.calm {
		return
	}
	m := w.pick()
	if l := w.leader(); l != nil && w.chance(0.3) {
		m = l
	}
	w.one(m)
	w.after(w.upTo(2*w.set.pace), w.act)
}

// ambush acts when a message of leases that matters is sent.
func (w *world) ambush(from *member, o Outgoing) {
	m := &o.Message
	matters := !m.Revoke.isNone() || !m.Confirm.isNone() || len(m.Lists) > 0 || m.Answer.For > 0 && w.chance(0.1)
	if w.calm || !matters || !w.chance(w.set.ambush) {
		return
	}
	victim := from
	if w.chance(0.5) {
		victim = w.member(o.To)
	}
	w.after(w.upTo(4*w.set.delay), func() { w.one(victim) })
}

const actCount = 15

// one does one thing, to a member or with it.
func (w *world) one(m *member) {
	long := w.upTo(3 * w.set.cfg.Lease)
	other := w.pick().id
	sum := 0
	for _, x := range w.set.weights {
		sum += x
	}
	at, kind := w.rng.IntN(sum), 0
	for at >= w.set.weights[kind] {
		at -= w.set.weights[kind]
		kind++
	}
	switch kind {
	case 0:
		w.pauseFor(m, long)
	case 1:
		w.restart(m, w.upTo(w.set.cfg.Lease), 0)
	case 2:
		w.restart(m, w.upTo(w.set.cfg.Lease)/8, 1+w.rng.IntN(2))
	case 3:
		w.isolate(m, long)
	case 4:
		w.cutFor(m.id, other, long)
	case 5:
		w.slow[m.id][other] = long / 2
		w.after(long, func() { w.slow[m.id][other] = 0 })
	case 6:
		w.bulk[m.id][other] = long / 4
		w.after(long, func() { w.bulk[m.id][other] = 0 })
	case 7:
		m.receive(func() { m.campaign(w.chance(0.3)) })
	case 8:
		w.rename()
	case 9:
		w.reconfigure()
	case 10:
		w.transfer()
	case 11:
		w.stick(m, long)
	case 12:
		for _, m := range w.members {
			w.drift(m)
		}
	case 13:
		w.split(long)
	case 14:
		m.slowApply = true
		m.later(long, func() {
			m.slowApply = false
			m.applyTo(m.commit)
		})
	}
}

func (w *world) pauseFor(m *member, d time.Duration) {
	if !m.alive || m.paused {
		return
	}
	w.reached.Pauses++
	w.logf("node %d is paused for %v", m.id, d)
	m.pause()
	life := m.life
	w.after(d, func() {
		if m.life == life {
			w.logf("node %d goes on", m.id)
			m.resume()
		}
	})
}

// restart stops a member and starts it again, and does so once more a number of times.
func (w *world) restart(m *member, d time.Duration, again int) {
	if !m.alive {
		return
	}
	w.reached.Restarts++
	w.logf("node %d stops", m.id)
	m.stop()
	w.after(d, func() {
		w.logf("node %d starts", m.id)
		m.start(m.disk.term == 0)
		if again > 0 {
			w.after(w.upTo(w.set.cfg.Lease), func() { w.restart(m, d, again-1) })
		}
	})
}

// cutFor loses what one member sends another.
func (w *world) cutFor(from, to NodeID, d time.Duration) {
	if w.cut[from][to] {
		return
	}
	w.logf("link %d to %d is cut for %v", from, to, d)
	w.cut[from][to] = true
	w.after(d, func() { w.cut[from][to] = false })
}

// isolate cuts a member off: in one direction, the other, or both.
func (w *world) isolate(m *member, d time.Duration) {
	ways := 1 + w.rng.IntN(3)
	for _, o := range w.members {
		if ways&1 != 0 {
			w.cutFor(m.id, o.id, d)
		}
		if ways&2 != 0 {
			w.cutFor(o.id, m.id, d)
		}
	}
}

// split cuts the members into two parts.
func (w *world) split(d time.Duration) {
	side := w.rng.IntN(1 << w.set.nodes)
	for _, a := range w.members {
		for _, b := range w.members {
			if side>>(a.id-1)&1 != side>>(b.id-1)&1 {
				w.cutFor(a.id, b.id, d)
			}
		}
	}
}

// stick stops a member's disk for a while.
func (w *world) stick(m *member, d time.Duration) {
	w.logf("the disk of node %d is stuck for %v", m.id, d)
	m.stuck = true
	m.later(d, func() { m.stuck = false })
}

// someWanted draws responders, for all keys or for two parts of them.
func (w *world) someWanted() []Want {
	some := func() (ids []NodeID) {
		for id := range w.set.nodes {
			if w.chance(0.5) {
				ids = append(ids, NodeID(id+1))
			}
		}
		return ids
	}
	if w.chance(0.5) {
		at := string(rune('a' + 1 + w.rng.IntN(keyCount-1)))
		return []Want{{Span: Span{End: at}, Nodes: some()}, {Span: Span{Start: at}, Nodes: some()}}
	}
	return []Want{{Nodes: some()}}
}

// rename lets an operator choose responders.
func (w *world) rename() {
	l := w.leader()
	if l == nil || l.paused {
		return
	}
	wanted := w.someWanted()
	w.logf("node %d: wanted %v", l.id, wanted)
	if err := l.lease.SetWanted(l.reading(), wanted); err != nil {
		w.fail("Messages", "%v", err)
	}
	if w.chance(0.05) {
		w.reached.Retired++
		_ = l.lease.Retire(l.reading(), true)
		l.later(w.upTo(w.set.cfg.Lease), func() { _ = l.lease.Retire(l.reading(), false) }) // it may not lead any more
	}
	l.flush()
}

// reconfigure changes who votes.
func (w *world) reconfigure() {
	l := w.leader()
	if l == nil || l.paused || l.wants != nil || l.conf.joint() {
		return
	}
	c := Members{Voters: l.conf.Voters.clone(), Learners: slices.Clone(l.conf.Learners)}
	move := func() {
		id := w.pick().id
		switch {
		case !c.Voters.has(id):
			c.Incoming = ascending(c.Incoming, []NodeID{id})
			c.Learners = slices.DeleteFunc(c.Learners, func(x NodeID) bool { return x == id })
		case len(c.Incoming) > 2:
			c.Incoming = slices.DeleteFunc(c.Incoming, func(x NodeID) bool { return x == id })
			c.Learners = ascending(c.Learners, []NodeID{id})
		}
	}
	if move(); w.chance(0.4) {
		move()
		move()
		c.Outgoing = l.conf.Voters.clone().Incoming
		// A member is not a learner while it still is a voter of the outgoing half.
		c.Learners = slices.DeleteFunc(c.Learners, func(x NodeID) bool { return slices.Contains(c.Outgoing, x) })
	}
	l.wantChange(c)
	l.flush()
}

// transfer lets a leader hand over.
func (w *world) transfer() {
	l := w.leader()
	if l == nil || l.paused || l.heir != 0 {
		return
	}
	heir := w.pick().id
	if heir == l.id || !l.conf.Voters.has(heir) {
		return
	}
	w.logf("node %d hands over to %d", l.id, heir)
	l.heir, l.handing = heir, l.reading().after(w.upTo(w.set.cfg.Lease/2))
	l.lease.HandOver(l.reading(), true, false)
	l.flush()
}

// recover ends all disturbance. All must be well again in bounded time: writes
// are committed, and whoever is wanted as a responder answers reads.
func (w *world) recover() {
	w.calm = true
	for i := range w.cut {
		clear(w.cut[i])
		clear(w.slow[i])
		clear(w.bulk[i])
	}
	for _, m := range w.members {
		m.lease.StandAside(m.reading(), false)
		m.stuck, m.slowApply, m.limps = false, false, 0
		if m.alive {
			m.applyTo(m.commit)
			m.resume()
		} else {
			m.start(m.disk.term == 0)
		}
	}
	c := w.set.cfg
	until := w.now + 4*(c.Lease+2*c.ElectionTimeout) + maxBackoff*c.Fail
	for w.now < until && w.failure == "" {
		w.run(100 * time.Millisecond)
		if w.isWell() {
			w.reached.Recovered++
			return
		}
	}
	w.fail("Liveness", "%v after peace returned not every wanted responder answers reads", until-w.now)
}

// isWell reports whether a write is committed that was proposed now, and all
// responders that are wanted answer reads.
func (w *world) isWell() bool {
	l := w.leader()
	if l == nil || l.conf.joint() || !w.agreesOnTuner(l) {
		return false
	}
	if l.lease.wish.retired {
		_ = l.lease.Retire(l.reading(), false) // it leads
	}
	before := l.commit
	l.propose(entry{keys: 1})
	w.run(50 * time.Millisecond)
	if l.commit <= before || !l.lease.IsStable(l.reading(), Span{}) {
		return false
	}
	for _, want := range l.lease.wish.wanted {
		for _, id := range want.Nodes {
			m := w.member(id)
			if id != l.id && l.conf.has(id) && !m.lease.IsStable(m.reading(), want.Span) {
				return false
			}
		}
	}
	return true
}
