// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
)

// outage is one process killed and started again.
type outage struct {
	node      uint64
	leader    bool // it led
	killed    time.Time
	restarted time.Time
}

// steps are what happens while the files are loaded.
func (d *run) steps() []step {
	at := func(percent int) int { return len(d.set.files) * percent / 100 }
	return []step{
		{at(25), func(ctx context.Context) error { return d.kill(ctx, true) }},
		{at(45), d.restart},
		{at(60), func(ctx context.Context) error { return d.kill(ctx, false) }},
		{at(80), d.restart},
	}
}

// kill kills the leader's process, or that of a follower which has not been
// killed before. All nodes are up before, so that a majority is left.
func (d *run) kill(ctx context.Context, leader bool) error {
	victim, err := d.victim(ctx, leader)
	if err != nil {
		return err
	}
	pid := victim.Process().PID()
	if err := victim.Kill(); err != nil {
		return err
	}
	d.outages = append(d.outages, outage{node: victim.id, leader: leader, killed: time.Now()})
	role := "a follower"
	if leader {
		role = "the leader"
	}
	d.p.event("killed node %d (%s, process %d) after %d files", victim.id, role, pid, d.load.files.Load())
	d.note(page.EventCommand, "node %d (%s) was killed by the demonstration", victim.id, role)
	return nil
}

func (d *run) victim(ctx context.Context, leader bool) (*node, error) {
	c := d.cluster
	err := c.wait(ctx, "all nodes to answer", func() bool {
		return c.up() == len(c.nodes) && c.leader() != nil
	})
	if err != nil {
		return nil, err
	}
	lead := c.leader()
	if leader {
		return lead, nil
	}
	for _, n := range c.nodes {
		if n != lead && (len(d.outages) == 0 || n.id != d.outages[0].node) {
			return n, nil
		}
	}
	return nil, fmt.Errorf("found no follower among %d nodes", len(c.nodes))
}

// restart starts the node that is down. The node catches up while the load goes on.
func (d *run) restart(context.Context) error {
	o := &d.outages[len(d.outages)-1]
	n := d.cluster.nodes[o.node-1]
	if err := n.Start(); err != nil {
		return err
	}
	o.restarted = time.Now()
	d.p.event("started node %d again (process %d) after %d files", n.id, n.Process().PID(), d.load.files.Load())
	d.note(page.EventCommand, "node %d was started by the demonstration", n.id)
	return nil
}

// gap returns the longest time without an acknowledged write while the node was
// down.
func (d *run) gap(o outage) time.Duration {
	return d.load.LongestGap(o.killed, o.restarted)
}
