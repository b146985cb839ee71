// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package failoverbench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// With leases a group takes longer to start, so the sides of a comparison are brought to
// one state before the kill: the same leader, the same election timeouts, and the same
// instant. What differs then between two gaps of a seed is due to leases alone.

const (
	// settleBy is when the leader leads and every responder has its leases, at the latest.
	settleBy = 2 * time.Second
	// loadTime is how long clients write before the kill.
	loadTime = 200 * time.Millisecond
)

// paired draws the election timeouts of a node. Up to the kill all draws of a seed and
// a node are one number, however many there were; from then on each draw differs, so
// that votes are not split again and again.
type paired struct {
	seed, node uint64
	killed     bool
	draws      uint64
}

// IntN implements raft.Rand.
func (p *paired) IntN(n int) int {
	if p.killed {
		p.draws++
	}
	return rand.New(rand.NewPCG(p.seed<<8|p.node, p.draws)).IntN(n)
}

// killLeased is kill for the comparison of leases on and off.
func (cfg *Config) killLeased(side virtual.Side, voters int, seed uint64) (Gap, error) {
	gap := Gap{Seed: seed}
	o := virtual.Network(voters, seed, cfg.Delay)
	var w watch
	w.use(side, &o)
	timeouts := make([]*paired, voters)
	configure := o.Configure
	o.Configure = func(id uint64, c *raft.Config) {
		configure(id, c)
		timeouts[id-1] = &paired{seed: seed, node: id}
		c.Rand = timeouts[id-1]
	}
	c, err := vnet.New(o)
	if err != nil {
		return gap, err
	}
	w.c = c
	if err := settleLeased(c); err != nil {
		return gap, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Rate: cfg.rate(voters), Sizes: []int{cfg.Size}, Seed: seed})
	if err != nil {
		return gap, err
	}
	at := settleBy + loadTime + time.Duration(seed%1000)*50*time.Microsecond
	if err := c.Run(at); err != nil {
		return gap, err
	}
	if !ready(c) {
		return gap, fmt.Errorf("node 1 does not lead at the kill, or lacks a lease: node %d leads", c.Leader())
	}
	for _, p := range timeouts {
		p.killed = true
	}
	return gap, w.loseLeader(&gap, load)
}

// settleLeased has node 1 lead with every node a responder, and lets time pass up to
// settleBy.
func settleLeased(c *vnet.Cluster) error {
	const step = 100 * time.Millisecond
	for c.Now() < settleBy-step {
		switch lead := c.Leader(); lead {
		case 1:
		case 0:
			if err := c.Campaign(1); err != nil {
				return err
			}
		default:
			if err := c.Do(lead, 0, func(rn *raft.RawNode) { rn.TransferLeader(1) }); err != nil {
				return err
			}
		}
		if err := c.Run(c.Now() + step); err != nil {
			return err
		}
	}
	if err := c.Run(settleBy); err != nil {
		return err
	}
	if !ready(c) {
		return fmt.Errorf("after %v node 1 does not lead, or lacks a lease: node %d leads", settleBy, c.Leader())
	}
	return nil
}

// ready reports whether node 1 leads, and every node with leases on answers reads.
func ready(c *vnet.Cluster) bool {
	for id := uint64(1); id <= uint64(c.Nodes()); id++ {
		if st := c.Core(id).LeaseStatus(); st.On && !st.Stable {
			return false
		}
	}
	return c.Leader() == 1
}
