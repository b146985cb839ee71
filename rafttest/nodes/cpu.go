// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// task is work for a processor. When it gets there it takes what waits for it
// and says how long that takes; effect is called when the time is over.
type task func() (cost time.Duration, effect func())

// cpu is a node's processor: it does one task at a time, in the order in which
// they became due. What comes in while a node is busy so waits together, and is
// one turn, one write, one frame, as in real life.
type cpu struct {
	n     *node
	due   []task
	busy  bool
	spent time.Duration
}

func (c *cpu) add(t task) {
	c.due = append(c.due, t)
	c.next()
}

func (c *cpu) next() {
	if c.busy || len(c.due) == 0 {
		return
	}
	t := c.due[0]
	c.due = c.due[1:]
	c.busy = true
	cost, effect := t()
	c.spent += cost
	c.n.after(cost, func() {
		c.busy = false
		effect()
		c.next()
	})
}
