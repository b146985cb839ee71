// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// packet is the most bytes that a connection sends before another has its turn.
const packet = 8 << 10

// card is a node's link out, at which connections have turns: whatever group a frame is of, the frame
// takes the node's rate. Pushed units, which have no urgency, leave when nothing else waits, as they do
// in the transport.
type card struct {
	n     *Node
	conns map[conn]*queue
	due   [2][]*queue // urgent, and not
	busy  bool
	sent  int
}

type conn struct {
	to    uint64
	class wire.Class
}

type queue struct {
	conn
	frames []outgoing
	bytes  int
}

type outgoing struct {
	left   int
	arrive func()
}

func (c *card) put(to uint64, class wire.Class, bytes int, arrive func()) {
	q := c.conns[conn{to, class}]
	if q == nil {
		q = &queue{conn: conn{to, class}}
		c.conns[q.conn] = q
	}
	if len(q.frames) == 0 {
		c.turn(q)
	}
	q.frames, q.bytes = append(q.frames, outgoing{bytes, arrive}), q.bytes+bytes
	c.next()
}

func (c *card) turn(q *queue) {
	i := 0
	if q.class == wire.ClassBackground {
		i = 1
	}
	c.due[i] = append(c.due[i], q)
}

// next sends a packet.
func (c *card) next() {
	i := 0
	if len(c.due[0]) == 0 {
		i = 1
	}
	if c.busy || len(c.due[i]) == 0 {
		return
	}
	q := c.due[i][0]
	c.due[i], c.busy = c.due[i][1:], true
	f := &q.frames[0]
	n, arrive := min(f.left, packet), func() {}
	if f.left -= n; f.left == 0 {
		arrive = f.arrive
	}
	w := c.n.w
	w.After(w.sending(n), func() {
		c.busy = false
		c.sent += n
		q.bytes -= n
		if f.left == 0 {
			q.frames = q.frames[1:]
		}
		if len(q.frames) > 0 {
			c.turn(q)
		}
		w.net.Send(c.n.ID, q.to, world.Frame{Bytes: n, Lane: int(q.class), Ordered: true, Arrive: func(bool) { w.Nodes[q.to-1].enter(n, arrive) }})
		c.next()
	})
}

// waiting returns the bytes of messages that wait for a member, for all groups, as the transport tells.
func (c *card) waiting(to uint64) (bytes int, known bool) {
	for _, class := range []wire.Class{wire.ClassControl, wire.ClassAppend} {
		if q := c.conns[conn{to, class}]; q != nil {
			bytes += q.bytes
		}
	}
	return bytes, true
}

// enter takes the node's link in for a packet.
func (n *Node) enter(bytes int, arrive func()) {
	if n.entered = max(n.entered, n.w.Now()); n.w.share == nil {
		n.entered += n.w.sending(bytes)
	}
	n.w.At(n.entered, arrive)
}

func (w *World) sending(bytes int) time.Duration {
	return time.Duration(float64(bytes) / w.plan.Rate * float64(time.Second))
}
