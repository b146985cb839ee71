// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// task is work for a processor. At its turn the task takes the waiting input
// and returns the time needed; effect is called when the time is over.
type task func() (cost time.Duration, effect func())

// cpu is a node's processor: tasks run singly, in the order in which they
// became due. So all input to a busy node waits together, and is one turn, one
// write, one frame, as in real life.
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
