// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import "time"

// packet is a message on its way: bytes, as the network sees it.
type packet struct {
	from, to uint64
	data     []byte
	// lost tells the sender that the packet will not arrive, if the sender is
	// to know; may be nil.
	lost func()
	// arrived tells the sender that the packet did arrive; may be nil.
	arrived func()
}

// link is a direction between two nodes.
type link struct {
	// cuts is the number of faults that block the link.
	cuts int
	// free is when the link will have sent all its packets.
	free time.Duration
	// last is when the last packet arrives, once it is calm.
	last time.Duration
	// resets counts the broken connections: a break loses the packets under
	// way.
	resets int
}

// queueTime bounds the wait for a link: packets with a longer wait are lost.
const queueTime = 500 * time.Millisecond

// network carries packets between nodes, and delays, loses, doubles and
// reorders them.
type network struct {
	s     *sim
	links [maxNodes + 1][maxNodes + 1]link
	// calm is set when the faults are over.
	calm bool
	// mended counts how often all links were mended.
	mended int
	// latest is when the last packet arrives that is under way.
	latest time.Duration
}

// send puts a packet on its way.
func (n *network) send(p packet) {
	s, l := n.s, &n.links[p.from][p.to]
	switch {
	case p.to == 0 || p.to > maxNodes:
		n.drop(p) // no node has the id
		return
	case l.cuts > 0:
		s.reach.Blocked++
		n.drop(p)
		return
	case !n.calm && s.net2.Chance(s.plan.loss):
		s.reach.Lost++
		n.drop(p)
		return
	}
	start := max(s.Now(), l.free)
	if s.plan.bandwidth > 0 {
		if start-s.Now() > queueTime {
			s.reach.Lost++
			n.drop(p)
			return
		}
		start += time.Duration(float64(len(p.data)) / s.plan.bandwidth * float64(time.Second))
		l.free = start
	}
	n.deliver(p, start)
	n.echo(p)
	if !n.calm && s.net2.Chance(s.plan.duplicate) {
		s.reach.Duplicated++
		p.lost, p.arrived = nil, nil
		n.deliver(p, start)
	}
}

// echo has a packet come again, perhaps, when its sender and its receiver may have been
// restarted since, lead another term, or be no members any more.
func (n *network) echo(p packet) {
	s := n.s
	if c := s.plan.coded; n.calm || c == nil || c.brief == nil || !s.falls.Chance(c.brief.echo) {
		return
	}
	p.lost, p.arrived = nil, nil
	after := s.falls.Span(time.Millisecond, time.Second)
	n.latest = max(n.latest, s.Now()+after)
	s.After(after, func() {
		s.coded.Echoes++
		n.s.node(p.to).receive(p)
	})
}

// deliver plans the arrival of a packet that leaves at an instant.
func (n *network) deliver(p packet, start time.Duration) {
	s := n.s
	at := start + s.net2.Within(s.plan.delayMin, s.plan.delayMax)
	if !n.calm && s.net2.Chance(s.plan.reorder) {
		s.reach.Reordered++
		at += s.net2.Within(0, 20*s.plan.delayMax)
	}
	more, inStep := s.held()
	at += more
	l := &n.links[p.from][p.to]
	if n.calm || inStep { // in order, as on any connection
		at = max(at, l.last)
		if more == 0 || !s.plan.coded.brief.overtaken {
			l.last = at
		}
	}
	n.latest = max(n.latest, at)
	resets := l.resets
	s.At(at, func() {
		if l.cuts > 0 || l.resets != resets {
			s.reach.Blocked++
			n.drop(p)
			return
		}
		s.node(p.to).receive(p)
	})
}

// drop loses a packet. The sender learns of it, if at all, after a while.
func (n *network) drop(p packet) {
	s := n.s
	if p.lost != nil {
		s.After(s.net2.Within(s.plan.delayMin, 10*s.plan.delayMax), p.lost)
	}
}

// cut blocks a direction until the returned function is called.
func (n *network) cut(from, to uint64) (mend func()) {
	l := &n.links[from][to]
	l.cuts++
	mended := n.mended
	return func() {
		if n.mended == mended {
			l.cuts--
		}
	}
}

// reset breaks the connection between two nodes: the packets under way are lost.
func (n *network) reset(a, b uint64) {
	n.links[a][b].resets++
	n.links[b][a].resets++
}

// mendAll ends all faults of the network.
func (n *network) mendAll() {
	n.calm = true
	n.mendLinks()
}

// mendLinks ends all cuts.
func (n *network) mendLinks() {
	n.mended++
	for i := range n.links {
		for j := range n.links[i] {
			n.links[i][j].cuts = 0
		}
	}
}
