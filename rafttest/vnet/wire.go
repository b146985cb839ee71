// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
)

// wire is the connection of a node to another, in one direction.
type wire struct {
	c        *Cluster
	from, to *node
	link     Link
	way      *world.Link
	// slow sends at the link's rate, if that is less than the card's.
	slow port
	// waiting is how many bytes wait at the card for this wire.
	waiting int
	sent    Traffic
}

func newWire(c *Cluster, from, to *node) *wire {
	draws := world.NewDraws(c.opts.Seed, uint64(from.index)<<8|uint64(to.index)|1<<16)
	w := &wire{c: c, from: from, to: to, way: c.net.Link(from.id, to.id)}
	w.way.Shape(world.Traits{}, draws)
	w.slow = port{agenda: &c.Agenda, sent: w.fly}
	return w
}

func (w *wire) setLink(l Link) {
	w.link = l
	w.way.Shape(world.Traits{Least: l.Delay, Tail: l.Jitter, StallChance: l.StallChance, Stall: l.Stall}, w.way.Draws)
	w.slow.setRate(l.Rate)
}

// narrow reports whether the link is slower than the card.
func (w *wire) narrow() bool {
	card := w.from.hardware.Egress
	return w.link.Rate > 0 && (card == 0 || w.link.Rate < card)
}

// begun hears that the card begins to send a packet. A slower link takes the
// packet now, because the link cannot run out of bytes before the card is
// through.
func (w *wire) begun(k *packet) {
	if !k.passed && w.narrow() {
		k.passed = true
		through := *k
		w.slow.enqueue(&through)
	}
}

// carded hears that a packet has left the card.
func (w *wire) carded(k *packet) {
	w.waiting -= k.size
	if !k.passed {
		w.fly(k)
	}
}

// fly lets a transmitted packet arrive. Each class keeps its order.
func (w *wire) fly(k *packet) {
	m, run := k.m, k.run
	w.way.Send(world.Frame{Lane: int(k.class), Ordered: true, Arrive: func(bool) {
		if run != nil {
			w.to.spend(w.to.hardware.Work, run)
			return
		}
		w.to.arrive(m)
	}})
}

// tell hands a message of the host to the card.
func (w *wire) tell(size int, run func()) {
	w.sent.Messages++
	w.sent.Bytes[Control] += uint64(size)
	w.waiting += size
	w.from.card.enqueue(&packet{run: run, wire: w, size: size, class: control})
}

// send hands a message to the card.
func (w *wire) send(m *pb.Message) {
	kind, size, riders := sizeOf(m)
	w.sent.Messages++
	w.sent.Bytes[kind] += uint64(size - riders)
	w.sent.Bytes[Rider] += uint64(riders)
	w.waiting += size
	w.from.card.enqueue(&packet{m: m, wire: w, size: size, class: classify(m)})
}
