// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// egress is where messages leave a node: a queue for each peer and class with a
// bound in bytes, and one network card that they share. Control messages go
// first; the others take turns.
type egress struct {
	n      *node
	lanes  map[laneID]*lane
	order  []*lane // as they were made, which is a function of the run
	turn   int
	busy   bool
	wakers []func() // snapshots waiting for room
}

type laneID struct {
	to    uint64
	class wire.Class
}

// lane is the queue of one connection, and the messages that have left and not
// been taken by the receiver.
type lane struct {
	laneID
	waiting []wire.Message
	bytes   int // of waiting
	// places has where the last MsgApp of each group appends that was queued
	// since the queue was empty.
	places map[uint64]wire.Place
	// blocked are messages that arrived at a full inbox: the receiver does not
	// read the connection, so nothing leaves either.
	blocked []blockedMessage
	last    time.Duration // when the last message arrives: connections keep order
}

func newEgress(n *node) egress { return egress{n: n, lanes: map[laneID]*lane{}} }

func (e *egress) lane(to uint64, class wire.Class) *lane {
	id := laneID{to, class}
	l := e.lanes[id]
	if l == nil {
		l = &lane{laneID: id, places: map[uint64]wire.Place{}}
		e.lanes[id] = l
		e.order = append(e.order, l)
	}
	return l
}

// drop lets everything go that has not left: the process ends.
func (e *egress) drop() { e.lanes, e.order, e.wakers = nil, nil, nil }

// send queues a message, or drops and reports it if there is no room.
func (e *egress) send(m wire.Message) {
	l := e.lane(m.To, m.Class())
	e.n.w.reach.Superseded += l.supersede(m)
	bound := e.n.w.plan.linkBytes
	if l.bytes >= bound && e.n.w.opts.Bug != NoLinkBudget {
		e.n.w.reach.LinkDrops++
		if !m.Repaired() {
			e.lost(m)
		}
		return
	}
	l.waiting = append(l.waiting, m)
	l.bytes += m.Size()
	e.next()
}

// supersede takes the messages made pointless by m out of the queue, by the
// transport's rule, and returns their number.
func (l *lane) supersede(m wire.Message) uint64 {
	place, ok := wire.PlaceOf(m)
	if !ok {
		return 0
	}
	before := len(l.waiting)
	if last, ok := l.places[m.Group]; ok && place.Supersedes(last) {
		l.waiting = slices.DeleteFunc(l.waiting, func(old wire.Message) bool {
			at, ok := wire.PlaceOf(old)
			pointless := ok && old.Group == m.Group && place.Supersedes(at)
			if pointless {
				l.bytes -= old.Size()
			}
			return pointless
		})
	}
	l.places[m.Group] = place
	return uint64(before - len(l.waiting))
}

// lost reports that a message did not get through: the transport knows when a
// connection breaks or a queue is full.
func (e *egress) lost(m wire.Message) {
	if mm := e.n.members[m.Group]; mm != nil {
		e.n.after(0, func() { mm.drive.Unreachable(m.To) })
	}
}

// next lets the next message leave when the card is free.
func (e *egress) next() {
	if e.busy {
		return
	}
	l := e.choose()
	if l == nil {
		return
	}
	m := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.bytes -= m.Size()
	if len(l.waiting) == 0 {
		clear(l.places)
	}
	e.busy = true
	w, life := e.n.w, e.n.life
	w.After(per(m.Size(), w.plan.costs.LinkKiB), func() {
		w.net.carry(e.n, l, m, life)
		if e.n.life != life || !e.n.up {
			return
		}
		e.busy = false
		if l.bytes < w.plan.linkBytes {
			wakers := e.wakers
			e.wakers = nil
			for _, wake := range wakers {
				wake()
			}
		}
		e.next()
	})
}

// choose returns the lane whose turn it is, or nil.
func (e *egress) choose() *lane {
	var best *lane
	turn := e.turn
	for i := range e.order {
		at := (turn + 1 + i) % len(e.order)
		l := e.order[at]
		switch {
		case len(l.waiting) == 0 || len(l.blocked) > 0:
		case l.class == wire.ClassControl:
			return l
		case best == nil:
			best, e.turn = l, at
		}
	}
	return best
}

// broken tells all groups that a connection to a peer broke.
func (e *egress) broken(peer uint64) {
	for _, g := range e.n.w.groups {
		if mm := e.n.members[g.id]; mm != nil {
			mm.drive.Unreachable(peer)
		}
	}
}

// network is the links between the nodes.
type network struct {
	w    *sim
	cuts [maxNodes + 1][maxNodes + 1]int           // faults blocking a direction
	slow [maxNodes + 1][maxNodes + 1]time.Duration // until when the direction is slow
	// held says until when a connection gets nothing through, and loses nothing.
	held map[*lane]time.Duration
	// deaf says until when a node hears neither appends nor verdicts.
	deaf [maxNodes + 1]time.Duration
}

// carry takes a message that left a node to its receiver.
func (nw *network) carry(from *node, l *lane, m wire.Message, life uint64) {
	w := nw.w
	lost := func() {
		w.reach.Lost++
		if from.up && from.life == life && !w.nets.Chance(w.plan.silent) {
			w.After(w.plan.costs.Delay, from.bound(func() { from.egress.lost(m) }))
		}
	}
	if nw.cuts[from.id][m.To] > 0 || nw.unheard(m) || w.nets.Chance(w.plan.loss) {
		lost()
		return
	}
	delay := w.plan.costs.Delay + time.Duration(w.nets.Float64()*float64(w.plan.costs.Delay)/4)
	if w.Now() < nw.slow[from.id][m.To] {
		delay = 5*delay + per(m.Size(), 20*w.plan.costs.LinkKiB)
	}
	m, ok := nw.encoded(m)
	if !ok {
		return
	}
	l.last = max(l.last+1, w.Now()+delay, nw.held[l])
	arrive := func() {
		if nw.cuts[from.id][m.To] > 0 {
			lost()
			return
		}
		nw.arrive(from, l, m, life)
	}
	w.At(l.last, arrive)
	if w.nets.Chance(w.plan.duplicate) {
		w.reach.Duplicated++
		w.At(l.last+delay, arrive)
	}
}

// encoded sends a message through the codec. A large payload is not copied for
// every receiver: the copies would take real time, and find no more than a
// small payload.
func (nw *network) encoded(m wire.Message) (wire.Message, bool) {
	if core, ok := m.Body.(wire.Raft); m.Size() > 4<<10 && (!ok || !core.OwnForm) {
		return m, true
	}
	got, err := world.OverWire(m)
	if err != nil {
		nw.w.fail(NoFailure, "a %v from %d to %d does not survive its encoding: %v", m.Kind(), m.From, m.To, err)
	}
	return got, err == nil
}

// arrive hands a message to its member; if the member has no room, the
// connection waits.
func (nw *network) arrive(from *node, l *lane, m wire.Message, life uint64) {
	to := nw.w.node(m.To)
	if to == nil || !to.up {
		if from.up && from.life == life {
			from.egress.lost(m)
		}
		return
	}
	mm := to.members[m.Group]
	if mm == nil {
		return
	}
	l.blocked = append(l.blocked, blockedMessage{mm, m})
	if len(l.blocked) == 1 {
		l.read(from.bound(func() { from.egress.next() }))
	}
}

// blockedMessage has arrived, and is not in the inbox of its member yet.
type blockedMessage struct {
	m   *member
	msg wire.Message
}

// read takes arrived messages to the inboxes, as far as there is room, and goes
// on when there is more. All messages behind a waiting message wait too, also
// for other groups, because the connection is shared.
func (l *lane) read(next func()) {
	for len(l.blocked) > 0 {
		b := l.blocked[0]
		if b.m.here() && !b.m.receive(b.msg) {
			b.m.n.w.reach.Blocked++
			b.m.blocking = append(b.m.blocking, func() { l.read(next) })
			return
		}
		l.blocked = l.blocked[1:]
	}
	next()
}

// hangUp breaks the connections to a dead process: its system tells the nodes
// at the other ends, if the nodes can be reached.
func (nw *network) hangUp(dead *node) {
	for _, other := range nw.w.nodes {
		connected := slices.ContainsFunc(other.egress.order, func(l *lane) bool { return l.to == dead.id })
		if other != dead && other.up && connected && nw.cuts[dead.id][other.id] == 0 {
			nw.w.reach.HangUps++
			other.after(nw.w.plan.costs.Delay, func() { other.egress.broken(dead.id) })
		}
	}
}

// cut blocks a direction until the returned function is called.
func (nw *network) cut(from, to uint64) (mend func()) {
	nw.cuts[from][to]++
	generation := nw.w.mended
	return func() {
		if generation == nw.w.mended {
			nw.cuts[from][to]--
		}
	}
}

// mendAll ends all faults of the network.
func (nw *network) mendAll() {
	nw.w.mended++
	nw.cuts = [maxNodes + 1][maxNodes + 1]int{}
	nw.slow = [maxNodes + 1][maxNodes + 1]time.Duration{}
	nw.held = map[*lane]time.Duration{}
	nw.deaf = [maxNodes + 1]time.Duration{}
}
