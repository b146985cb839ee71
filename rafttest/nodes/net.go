// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
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
	waiting []queuedMessage
	bytes   int // of waiting
	// places has where the last MsgApp of each group appends that was queued
	// since the queue was empty.
	places map[uint64]wire.Place
	// blocked are messages that arrived at a full inbox: the receiver does not
	// read the connection, so nothing leaves either.
	blocked []blockedMessage
}

// queuedMessage is a message that has waited since a time.
type queuedMessage struct {
	wire.Message
	at time.Duration
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
	if l.bytes >= bound && e.n.w.opts.Bug != noLinkBudget {
		e.n.w.reach.LinkDrops++
		if !m.Repaired() {
			e.lost(m)
		}
		return
	}
	l.waiting = append(l.waiting, queuedMessage{m, e.n.w.Now()})
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
		l.waiting = slices.DeleteFunc(l.waiting, func(old queuedMessage) bool {
			at, ok := wire.PlaceOf(old.Message)
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
	m := l.waiting[0].Message
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
	*world.Network
	w *sim
	// deaf says until when a node hears neither appends nor verdicts.
	deaf [maxNodes + 1]time.Duration
	// watch, unless nil, sees each message that leaves a node.
	watch func(wire.Message)
}

// carry takes a message that left a node to its receiver.
func (nw *network) carry(from *node, l *lane, m wire.Message, life uint64) {
	w := nw.w
	lost := func() {
		if from.up && from.life == life && !w.nets.Chance(w.plan.silent) {
			w.After(w.plan.costs.Delay, from.bound(func() { from.egress.lost(m) }))
		}
	}
	if nw.watch != nil {
		nw.watch(m)
	}
	w.countUnits(m)
	if w.unknownKind(m) {
		w.fail(namesExact, "node %d, which knows no names, is sent a %v", m.To, m.Kind())
	}
	if nw.unheard(m) {
		lost()
		return
	}
	if m, ok := nw.encoded(m); ok {
		nw.Send(from.id, m.To, world.Frame{Bytes: m.Size(), Lane: int(l.class), Ordered: true, Lost: lost,
			Arrive: func(bool) { nw.arrive(from, l, m, life) }})
	}
}

// encoded sends a message through the codec. A large payload is not copied for
// every receiver: the copies would take real time, and find no more than a
// small payload.
func (nw *network) encoded(m wire.Message) (wire.Message, bool) {
	if core, ok := m.RaftBody(); m.Size() > 4<<10 && (!ok || !core.OwnForm) {
		return m, true
	}
	got, err := world.OverWire(m)
	if err != nil {
		nw.w.fail(noFailure, "a %v from %d to %d does not survive its encoding: %v", m.Kind(), m.From, m.To, err)
	}
	return got, err == nil
}

// arrive hands a message to its member; if the member has no room, the
// connection waits.
func (nw *network) arrive(from *node, l *lane, m wire.Message, life uint64) {
	if gt := nw.w.gate(m.To); gt != nil {
		gt.receive(m)
		return
	}
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
			b.m.n.w.reach.Unread++
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
		if other != dead && other.up && connected && !nw.Link(dead.id, other.id).IsCut() {
			nw.w.reach.HangUps++
			other.after(nw.w.plan.costs.Delay, func() { other.egress.broken(dead.id) })
		}
	}
}

// mendAll ends all faults of the network.
func (nw *network) mendAll() {
	nw.Mend()
	nw.deaf = [maxNodes + 1]time.Duration{}
}

// unheard reports whether a message does not get through to a deaf node.
func (nw *network) unheard(m wire.Message) bool {
	_, verdict := m.Body.(wire.Verdict)
	return m.To <= maxNodes && nw.w.Now() < nw.deaf[m.To] && (verdict || m.Class() == wire.ClassAppend)
}

// countUnits counts a message with units of others, or one that asks another zone for units.
func (w *sim) countUnits(m wire.Message) {
	b, ok := m.RaftBody()
	if !ok || len(b.GetContext()) != 1 {
		return
	}
	p := &w.plan.naming
	switch purpose := b.GetContext()[0]; {
	case b.GetType() == raft.MsgUnits && purpose == 'c':
		w.reach.UnitsPassedInZones++
		if !p.relays(m.From) || !p.relays(m.To) || p.zone(m.From) != p.zone(m.To) {
			w.fail(namesExact, "node %d passes units on to node %d, as if both stood in one zone", m.From, m.To)
		}
	case b.GetType() == raft.MsgUnitsAsk && purpose == 'q' && p.relays(m.From) && p.zone(m.From) != p.zone(m.To):
		w.reach.FarPulls++
	}
}

// unknownKind reports whether a node of an earlier version is sent a message about names.
func (w *sim) unknownKind(m wire.Message) bool {
	p := &w.plan.naming
	switch b := m.Body.(type) {
	case wire.Named:
		if b.Run.Count > 0 && (!p.runs(m.To) || !p.runs(b.Run.Relay)) {
			return true
		}
		for _, n := range b.Names {
			if n.Relay != 0 && !p.relays(m.To) {
				return true
			}
		}
		return !p.takes(m.To)
	case wire.Lack, wire.Fill:
		return !p.takes(m.To)
	case wire.Want:
		return !p.relays(m.To)
	}
	return false
}

// standing returns for how long the first message to a node has waited.
func (e *egress) standing(to uint64) (age time.Duration) {
	for _, class := range [...]wire.Class{wire.ClassControl, wire.ClassAppend} {
		if l := e.lanes[laneID{to, class}]; l != nil && len(l.waiting) > 0 {
			age = max(age, e.n.w.Now()-l.waiting[0].at)
		}
	}
	return age
}
