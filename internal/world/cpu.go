// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import "time"

// Task is work for a processor. At its turn the task takes the waiting input and
// returns the time needed; effect is called when the time is over.
type Task func() (cost time.Duration, effect func())

// CPU is the processor of a machine, for one process: tasks run singly, in the
// order in which they became due. So all input to a busy node waits together, and
// is one turn, one write, one frame, as in real life.
type CPU struct {
	// After plans an effect for a time from now, unless the process ends before.
	After func(d time.Duration, happen func())
	// Speed returns how many times as long as at its best the processor takes; nil
	// means once.
	Speed func() int
	Spent time.Duration
	// Wake is what the first task takes beside its cost if the processor had nothing to do before.
	Wake time.Duration
	// Share, unless nil, is the machine's processors, for which processes wait for each other.
	Share *Processors

	due  []Task
	busy bool
	idle bool // since the last task
}

// Add gives the processor a task.
func (c *CPU) Add(t Task) {
	c.due = append(c.due, t)
	c.next()
}

func (c *CPU) next() {
	if c.busy || len(c.due) == 0 {
		return
	}
	c.busy = true
	c.Share.take(c.begin)
}

// begin begins the first task.
func (c *CPU) begin() {
	t := c.due[0]
	c.due = c.due[1:]
	cost, effect := t()
	if c.Speed != nil {
		cost *= time.Duration(c.Speed())
	}
	if c.idle {
		c.idle = false
		cost += c.Wake
	}
	c.Spent += cost
	c.After(cost, func() {
		c.busy = false
		effect()
		c.Share.give()
		c.next()
		c.idle = !c.busy
	})
}

// Stutter has a machine be ten times slower for a time, where work takes no time of a
// processor: the machine stands still nine tenths of the time.
func (a *Agenda) Stutter(lasting time.Duration, still func(d time.Duration)) {
	const slice = time.Millisecond
	end := a.now + lasting
	var again func()
	again = func() {
		if a.now < end {
			still(9 * slice)
			a.After(10*slice, again)
		}
	}
	again()
}
