// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
)

// packet is a message on its way.
type packet struct {
	m     *pb.Message
	run   func() // of a message between hosts: what its arrival does; m is nil
	wire  *wire
	size  int
	class class
	// left is how many bytes are left to send at the packet's present port.
	left float64
	// passed says that the link has the packet, too: a link slower than the card
	// transmits from the moment at which the card begins.
	passed bool
}

// port sends one packet at a time: the most urgent first, packets of a class in
// order. A more urgent packet interrupts the packet being sent, and the latter
// goes on where it was, as with cards that interleave frames of several
// connections. A port is a node's card, or a link slower than the card.
type port struct {
	agenda *world.Agenda
	rate   float64 // bytes a second; 0: no time at all
	queue  [classes]fifo
	bytes  int // of all packets waiting or being sent
	now    *packet
	ends   time.Duration
	// turn numbers the beginnings, so that a postponed end is known.
	turn uint64
	// begun is called when a packet begins, and sent when a packet is through.
	begun, sent func(*packet)
}

func (p *port) enqueue(k *packet) {
	k.left = float64(k.size)
	p.bytes += k.size
	switch {
	case p.now == nil:
		p.begin(k)
	case k.class < p.now.class:
		p.interrupt()
		p.begin(k)
	default:
		p.queue[k.class].push(k)
	}
}

// interrupt puts the packet being sent back to the head of its queue.
func (p *port) interrupt() {
	k := p.now
	k.left = max(0, (p.ends-p.agenda.Now()).Seconds()*p.rate)
	p.queue[k.class].pushFront(k)
	p.now = nil
}

// setRate changes the rate, also of what is being sent.
func (p *port) setRate(rate float64) {
	if p.now == nil {
		p.rate = rate
		return
	}
	p.interrupt()
	p.rate = rate
	p.next()
}

func (p *port) begin(k *packet) {
	p.now, p.ends = k, p.agenda.Now()
	p.turn++
	turn := p.turn
	if p.begun != nil {
		p.begun(k)
	}
	if p.rate == 0 {
		p.end()
		return
	}
	p.ends += time.Duration(k.left / p.rate * float64(time.Second))
	p.agenda.At(p.ends, func() {
		if p.turn == turn {
			p.end()
		}
	})
}

// end passes on the sent packet and begins the next.
func (p *port) end() {
	k := p.now
	p.now = nil
	p.turn++
	p.bytes -= k.size
	p.sent(k)
	p.next()
}

// next begins with the most urgent packet.
func (p *port) next() {
	for c := range p.queue {
		if p.now == nil && p.queue[c].len() > 0 {
			p.begin(p.queue[c].pop())
		}
	}
}

// clear drops all that waits: the node is no more.
func (p *port) clear() {
	p.turn++
	p.now, p.bytes, p.queue = nil, 0, [classes]fifo{}
}

// fifo is a queue of packets.
type fifo struct {
	items []*packet
	head  int
}

func (f *fifo) len() int       { return len(f.items) - f.head }
func (f *fifo) push(k *packet) { f.items = append(f.items, k) }

func (f *fifo) pushFront(k *packet) {
	if f.head == 0 {
		f.items = append([]*packet{nil}, f.items...)
		f.head = 1
	}
	f.head--
	f.items[f.head] = k
}

func (f *fifo) pop() *packet {
	k := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 64 && f.head*2 > len(f.items) {
		f.items = f.items[:copy(f.items, f.items[f.head:])]
		f.head = 0
	}
	return k
}
