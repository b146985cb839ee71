// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rawnode/session"
)

// client does one operation after the other in a session of its own, each
// through any node, and tries again elsewhere without an answer: under the same
// number, so that the operation takes effect once.
type client struct {
	w       *sim
	g       *group
	id      int
	session session.ID // 0: no session
	seq     uint64
	near    uint64            // the last node with an answer
	seen    [storeKeys]uint32 // the last known value of each key
	// patient clients never give up, and have no think time: scenarios.
	patient bool
	stopped bool
	done    int // operations with a result
}

const mostTries = 10

func (w *sim) addClient(g *group) *client {
	c := &client{w: w, g: g, id: w.clients + 1, near: g.founders[w.cli.IntN(len(g.founders))]}
	w.clients++
	c.later()
	return c
}

func (c *client) later() {
	think := c.w.plan.think
	if c.patient {
		think = time.Millisecond
	}
	c.w.After(c.w.cli.Wait(think), c.next)
}

// next begins an operation.
func (c *client) next() {
	w := c.w
	if c.stopped || w.calming && !c.patient || w.failure != nil {
		return
	}
	w.history.operations++
	op := &operation{id: w.history.operations, client: c.id, group: c.g.id, call: w.history.stamp(), session: c.session}
	if c.session == 0 {
		op.verb = verbOpen
		c.try(op)
		return
	}
	op.key = uint8(w.cli.IntN(w.plan.keys))
	op.verb = world.Pick(w.cli, verbGet, verbPut, verbPut, verbSwap)
	if op.verb != verbGet {
		c.seq++
		op.seq, op.acked, op.value, op.old = c.seq, c.seq-1, op.id, c.seen[op.key]
		op.padding = int(w.cli.Scale(w.plan.smallest, w.plan.largest))
	}
	w.history.ops = append(w.history.ops, op)
	c.try(op)
}

// choose picks a node for a try.
func (c *client) choose(op *operation) *node {
	w := c.w
	if op.tries > 1 {
		if m := c.g.leading(); m != nil && w.cli.Chance(0.3) {
			c.near = m.n.id
		} else {
			c.near = 1 + uint64(w.cli.IntN(maxNodes))
			for !c.g.knows(c.near) {
				c.near = 1 + c.near%maxNodes
			}
		}
	}
	return w.node(c.near)
}

// try sends an operation to a node, and plans what follows if no answer comes.
func (c *client) try(op *operation) {
	w := c.w
	if op.finished || op.abandoned || c.stopped {
		return
	}
	if op.tries++; op.tries > mostTries && !c.patient {
		c.giveUp(op)
		return
	}
	if op.tries > 1 {
		w.reach.Retries++
	}
	tries := op.tries
	op.waiting = true
	again := func() {
		if op.tries == tries && op.waiting {
			op.waiting = false
			c.try(op)
		}
	}
	if !c.tryAtGate(op, again) {
		n := c.choose(op)
		w.After(w.plan.costs.Delay, func() {
			if m := n.members[c.g.id]; n.up && m != nil && c.g.knows(n.id) {
				n.bound(func() { c.send(op, m, n.id, again) })()
			}
		})
	}
	w.After(w.plan.deadline+2*electionTime, again)
}

func (c *client) giveUp(op *operation) {
	c.w.reach.Indeterminate++
	op.abandoned = true
	c.session, c.seq = 0, 0
	c.later()
}

// entrance is where a client makes its calls: a member of the group, or its gateway.
type entrance interface {
	propose(op *operation, deadline time.Duration, end func(answer, error))
	query(key uint8, deadline time.Duration, end func(value uint32, err error))
}

// send makes the call at a node or a gateway.
func (c *client) send(op *operation, at entrance, id uint64, again func()) {
	w := c.w
	end := func(a answer, err error) {
		if err == nil {
			c.answered(op, id, a)
			return
		}
		if op.verb == verbGet && !errors.Is(err, replica.ErrRefused) {
			w.fail(verdicts, "n%d: a read ends with %v", id, err)
		}
		w.After(w.cli.Wait(2*tickTime), again)
	}
	if op.verb == verbGet {
		at.query(op.key, w.plan.deadline, func(value uint32, err error) { end(answer{value: value}, err) })
		return
	}
	at.propose(op, w.plan.deadline, end)
}

// answered takes an answer given by a node now, on its way to the client for a
// moment.
func (c *client) answered(op *operation, by uint64, a answer) {
	w := c.w
	op.waiting = false
	w.After(w.plan.costs.Delay, func() {
		if op.finished || op.abandoned {
			return
		}
		if a.verdict != session.Fresh && a.verdict != session.Repeated {
			// The session is no more, or has forgotten: nobody knows.
			w.reach.Expired++
			c.giveUp(op)
			return
		}
		op.finished, op.result, op.ret = true, a, w.history.stamp()
		if by <= maxNodes {
			c.near = by
		}
		c.done++
		switch op.verb {
		case verbOpen:
			c.session = a.session
		case verbGet:
			w.reach.Reads++
			c.seen[op.key] = a.value
		default:
			w.reach.Writes++
			c.g.wrote()
			c.g.fresh.acknowledged(w.Now(), op)
			if a.done {
				c.seen[op.key] = op.value
			}
		}
		w.tell(by, "answers client %d: %v key %d old %d new %d: %v %d", c.id, op.verb, op.key, op.old, op.value, a.done, a.value)
		c.later()
	})
}

// tryAtGate sends a try to a gateway, if the client goes to one.
func (c *client) tryAtGate(op *operation, again func()) bool {
	w := c.w
	if len(w.gates) == 0 || !w.gated.Chance(w.plan.gates.share) {
		return false
	}
	gt := w.gates[w.gated.IntN(len(w.gates))]
	w.After(w.plan.costs.Delay, func() {
		if gt.up {
			gt.bound(func() { c.send(op, gt.groups[c.g.id], gt.id, again) })()
		}
	})
	return true
}
