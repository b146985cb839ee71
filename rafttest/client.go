// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"
)

// client does one operation after the other, each through any node, and tries
// again elsewhere if no answer comes. A put or swap keeps its id when it is
// sent again.
type client struct {
	s *sim
	// id names the client's session. A client that gives an operation up goes
	// on under a new id, as the old operation may still happen.
	id  uint32
	seq uint32
	// near is the last node with an answer.
	near uint64
	// seen is the last known value of each key, for swaps to replace.
	seen [storeKeys]uint32
}

// attempts is how often an operation is tried.
const attempts = 8

func (s *sim) startClients() {
	for range s.plan.clients {
		c := &client{s: s, near: 1}
		c.renew()
		c.nextLater()
	}
}

// renew gives the client a session that nobody had.
func (c *client) renew() {
	c.s.history.sessions++
	c.id, c.seq = c.s.history.sessions, 0
}

func (c *client) nextLater() {
	c.s.After(c.s.rng.Wait(c.s.plan.thinkTime), c.next)
}

// next begins an operation, unless the run is about to end.
func (c *client) next() {
	s := c.s
	if s.calm() {
		return
	}
	c.seq++
	cmd := command{id: commandID{c.id, c.seq}, key: uint8(s.rng.IntN(s.plan.keys)), padding: s.rng.IntN(s.plan.padding + 1)}
	switch s.rng.IntN(3) {
	case 0:
		cmd.verb = verbGet
	case 1:
		cmd.verb = verbPut
	case 2:
		cmd.verb = verbSwap
		cmd.old = c.seen[cmd.key]
	}
	if cmd.verb != verbGet {
		s.history.values++
		cmd.value = s.history.values
	}
	op := &operation{command: cmd, call: s.nextStamp()}
	s.history.ops = append(s.history.ops, op)
	c.try(op, attempts)
}

// try sends an operation to a node, and plans what happens without an answer.
func (c *client) try(op *operation, left int) {
	s := c.s
	if op.finished {
		return
	}
	if s.end.live {
		op.abandoned = true
		return
	}
	if left == 0 {
		s.reach.Indeterminate++
		s.tell(0, "client %d gives up %v", c.id, op.command.id)
		c.renew()
		c.nextLater()
		op.abandoned = true
		return
	}
	if left < attempts {
		s.reach.Retries++
		c.near = uint64(1 + s.rng.IntN(s.plan.voters+s.plan.spares))
		if n := s.leading(); n != nil && s.rng.Chance(0.6) {
			c.near = n.id
		}
	}
	n := s.node(c.near)
	if n.up() {
		n.bound(func() { c.send(op, n) })()
	}
	s.After(s.rng.Within(100*time.Millisecond, 600*time.Millisecond), func() {
		if !op.abandoned {
			c.try(op, left-1)
		}
	})
}

// send hands an operation to a process.
func (c *client) send(op *operation, n *node) {
	s, p := c.s, n.proc
	if op.verb == verbGet {
		reply := func() { c.answered(op, n, result{value: p.store.values[op.key]}) }
		if s.plan.leased != nil {
			p.readOf(op.key, reply)
		} else {
			p.read(reply)
		}
		return
	}
	cmd := op.command
	s.history.attempts++
	cmd.attempt = s.history.attempts
	p.propose(cmd, func(r result) { c.answered(op, n, r) })
}

// answered takes an answer given by a node now, on its way to the client for a
// moment.
func (c *client) answered(op *operation, n *node, r result) {
	s := c.s
	s.After(s.rng.Within(0, 2*time.Millisecond), func() {
		if op.finished || op.abandoned {
			return
		}
		op.finished, op.result, op.ret = true, r, s.nextStamp()
		switch op.verb {
		case verbGet:
			s.reach.Reads++
			c.seen[op.key] = r.value
		case verbPut:
			s.reach.Puts++
			c.seen[op.key] = op.value
		case verbSwap:
			s.reach.Swaps++
			if r.done {
				c.seen[op.key] = op.value
			}
		}
		c.near = n.id
		s.tell(n.id, "answers client %d: %d key %d old %d new %d: %d %v", c.id, op.verb, op.key, op.old, op.value, r.value, r.done)
		c.nextLater()
	})
}

// nextStamp returns the next number in the order of calls and returns.
func (s *sim) nextStamp() int64 {
	s.stamp++
	return s.stamp
}
