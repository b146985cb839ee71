// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/raft"
)

// Hosts do more than cores: they take reads of clients, and may talk to each other.

// Do lets a node's host do something with its core, after so much work of the node's
// processor, which takes one thing after the other. The node's process may end before.
// Errors: [errDown].
func (c *Cluster) Do(id uint64, work time.Duration, run func(rn *raft.RawNode)) error {
	n := c.node(id)
	if n == nil || n.dead {
		return fmt.Errorf("%w: node %d", errDown, id)
	}
	n.spend(work, func() { run(n.rn) })
	return nil
}

// Tell sends a message of size bytes from a node's host to the host of another, beside
// the messages of cores and like them. run is called there at the arrival.
func (c *Cluster) Tell(from, to uint64, size int, run func()) {
	a, w := c.node(from), c.wire(from, to)
	if w == nil || a.dead {
		return
	}
	a.charge(a.hardware.Work)
	w.tell(size, run)
}

// Busy returns how long a node's processor has worked since the cluster began.
func (c *Cluster) Busy(id uint64) time.Duration { return c.node(id).cpu.busy }

// cpu is a processor with one piece of work at a time.
type cpu struct {
	free time.Duration // when all work so far is done
	busy time.Duration // the time worked
}

// charge adds work that delays only later work.
func (n *node) charge(d time.Duration) {
	if d > 0 {
		n.cpu.busy += d
		n.cpu.free = max(n.cpu.free, n.c.Now()) + d
	}
}

// spend runs a call at the node when the processor has done all earlier work,
// and the work of the call.
func (n *node) spend(d time.Duration, run func()) {
	n.charge(d)
	if wait := n.cpu.free - n.c.Now(); wait > 0 {
		n.later(wait, run)
		return
	}
	n.do(run)
}
