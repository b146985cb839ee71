// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
)

// wire is the connection of a node to another, in one direction.
type wire struct {
	c        *Cluster
	from, to *node
	link     Link
	draws    world.Draws
	// slow sends at the link's rate, if that is less than the card's.
	slow port
	// last is when the last message of a class arrives: each keeps its order.
	last [classes]time.Duration
	// waiting is how many bytes wait at the card for this wire.
	waiting int
	sent    Traffic
}

func newWire(c *Cluster, from, to *node) *wire {
	w := &wire{c: c, from: from, to: to, draws: world.NewDraws(c.opts.Seed, uint64(from.index)<<8|uint64(to.index)|1<<16)}
	w.slow = port{agenda: &c.agenda, sent: w.fly}
	return w
}

func (w *wire) setLink(l Link) {
	w.link = l
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

// fly lets a transmitted packet arrive.
func (w *wire) fly(k *packet) {
	at := w.c.agenda.Now() + w.link.Delay
	if w.link.Jitter > 0 {
		at += w.draws.Wait(w.link.Jitter)
	}
	if w.draws.Chance(w.link.StallChance) {
		at += w.link.Stall
	}
	at = max(at, w.last[k.class])
	w.last[k.class] = at
	m := k.m
	if k.run != nil {
		w.c.agenda.At(at, func() { w.to.spend(w.to.hardware.Work, k.run) })
		return
	}
	w.c.agenda.At(at, func() { w.to.arrive(m) })
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
	if w.c.opts.OnSend != nil {
		w.c.opts.OnSend(m, kind, size)
	}
	w.waiting += size
	w.from.card.enqueue(&packet{m: m, wire: w, size: size, class: classify(m)})
}
