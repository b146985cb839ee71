// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/raft"
)

// Nodes returns the number of nodes; the ids are 1 to that number.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Leader returns the last elected leader, if leadership has not been given up,
// or 0.
func (c *Cluster) Leader() uint64 { return c.leader }

// Core returns a node's core, to look at it. 0 and unknown ids: nil.
func (c *Cluster) Core(id uint64) *raft.RawNode {
	if n := c.node(id); n != nil {
		return n.rn
	}
	return nil
}

// Applied returns how far a node's state machine is; Committed, the node's known
// commit index.
func (c *Cluster) Applied(id uint64) uint64 { return c.node(id).applied }

// Committed returns the commit index that a node knows.
func (c *Cluster) Committed(id uint64) uint64 { return c.node(id).commit }

// Propose proposes at a node. Errors: [errDown], and those of raft.
func (c *Cluster) Propose(id uint64, data []byte) error {
	return c.ask(id, func(rn *raft.RawNode) error { return rn.Propose(data) })
}

// Campaign makes a node try to lead, now.
func (c *Cluster) Campaign(id uint64) error {
	return c.ask(id, (*raft.RawNode).Campaign)
}

// ask asks the core of a node that runs.
func (c *Cluster) ask(id uint64, do func(*raft.RawNode) error) error {
	n := c.node(id)
	if n == nil || n.dead || n.paused {
		return fmt.Errorf("%w: node %d", errDown, id)
	}
	defer n.touch()
	return do(n.rn)
}

// Elect lets a node campaign until it leads and has committed an entry, for at
// most 100 election timeouts.
func (c *Cluster) Elect(id uint64) error {
	before := c.Committed(id)
	for range 100 {
		if err := c.Campaign(id); err != nil {
			return err
		}
		until := c.Now() + 2*electionTicks*c.opts.Tick
		ok, err := c.RunUntil(until, func() bool { return c.leader == id && c.Committed(id) > before })
		if ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("vnet: node %d does not become leader", id)
}

// Kill stops a node: all data not durable, and all bytes still in its card, are
// lost. Nobody is told.
func (c *Cluster) Kill(id uint64) {
	n := c.node(id)
	if n == nil || n.dead {
		return
	}
	n.dead, n.paused, n.held = true, false, nil
	n.life++
	n.flushing, n.wakeAt, n.cpu.free = false, 0, 0
	n.disk.clear()
	n.card.clear()
	for _, w := range n.wires {
		if w != nil {
			w.slow.clear()
			w.waiting = 0
		}
	}
	if c.leader == id {
		c.leader = 0
	}
}

// Restart starts a dead node from its durable state.
func (c *Cluster) Restart(id uint64) error {
	n := c.node(id)
	if n == nil || !n.dead {
		return fmt.Errorf("vnet: node %d is not dead", id)
	}
	n.dead = false
	// The state machine is made durable as far as the log says it is committed.
	hs, _, err := n.store.InitialState()
	if err != nil {
		return err
	}
	if commit := hs.GetCommit(); commit < n.applied {
		n.applied = commit
		n.digest, _ = c.digestAt(commit)
	}
	n.mark, n.sinceMark = n.applied, 0
	return n.start()
}

// Pause stops a node's process. The node's card goes on, and arriving messages wait.
func (c *Cluster) Pause(id uint64) {
	if n := c.node(id); n != nil {
		n.paused = true
	}
}

// Resume ends a pause: all that has waited happens now, in order.
func (c *Cluster) Resume(id uint64) {
	n := c.node(id)
	if n == nil || !n.paused {
		return
	}
	held := n.held
	n.paused, n.held = false, nil
	for _, run := range held {
		n.do(run)
	}
	if !n.dead {
		n.touch()
	}
}

// SetNode changes a node's hardware from now on.
func (c *Cluster) SetNode(id uint64, hw Node) error {
	n := c.node(id)
	if n == nil {
		return fmt.Errorf("vnet: SetNode: there is no node %d", id)
	}
	if err := hw.Validate(); err != nil {
		return fmt.Errorf("vnet: SetNode: node %d: %w", id, err)
	}
	n.hardware = hw
	n.card.setRate(hw.Egress)
	return nil
}

// SetLink changes what connects a node to another from now on.
func (c *Cluster) SetLink(from, to uint64, l Link) error {
	a, b := c.node(from), c.node(to)
	if a == nil || b == nil || a == b {
		return fmt.Errorf("vnet: SetLink: no link leads from %d to %d", from, to)
	}
	if err := l.Validate(); err != nil {
		return fmt.Errorf("vnet: SetLink: %d to %d: %w", from, to, err)
	}
	a.wires[b.index].setLink(l)
	return nil
}

// Sent returns what a node has sent to another since the cluster began.
func (c *Cluster) Sent(from, to uint64) Traffic {
	if w := c.wire(from, to); w != nil {
		return w.sent
	}
	return Traffic{}
}

// SentBy returns the traffic from a node to all others; SentByAll, the traffic
// of all.
func (c *Cluster) SentBy(from uint64) (sum Traffic) {
	for to := range c.nodes {
		sum = sum.Plus(c.Sent(from, uint64(to)+1))
	}
	return sum
}

// SentByAll returns the traffic of all nodes.
func (c *Cluster) SentByAll() (sum Traffic) {
	for from := range c.nodes {
		sum = sum.Plus(c.SentBy(uint64(from) + 1))
	}
	return sum
}

func (c *Cluster) wire(from, to uint64) *wire {
	a, b := c.node(from), c.node(to)
	if a == nil || b == nil || a == b {
		return nil
	}
	return a.wires[b.index]
}

// Counts is the numbers of events in a run.
type Counts struct {
	Events, Messages, Refused, Snapshots uint64
	Time                                 time.Duration
}

// Counts returns the numbers up to now: events of the simulation, messages sent,
// messages refused by a core, snapshots installed.
func (c *Cluster) Counts() Counts {
	return Counts{c.events, c.SentByAll().Messages, c.refused, c.snapshots, c.Now()}
}
