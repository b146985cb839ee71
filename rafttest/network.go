// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

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

// queueTime bounds the wait for a link: packets with a longer wait are lost.
const queueTime = 500 * time.Millisecond

// network carries packets between nodes.
type network struct {
	*world.Network
	s *sim
}

// send puts a packet on its way.
func (n *network) send(p packet) {
	n.Send(p.from, p.to, world.Frame{Bytes: len(p.data), Lost: func() { n.drop(p) }, Arrive: func(again bool) {
		p := p
		if again {
			p.lost, p.arrived = nil, nil
		}
		n.s.node(p.to).receive(p)
	}})
}

// drop loses a packet. The sender learns of it, if at all, after a while.
func (n *network) drop(p packet) {
	s := n.s
	if p.lost != nil {
		s.After(s.net2.Within(s.plan.links.Least, 10*s.plan.links.Most), p.lost)
	}
}
