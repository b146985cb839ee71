// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Side is a way to replicate that runs in the real core.
type Side struct {
	Name, About string
	// Configure turns a node's configuration into this side's. Each node gets its own
	// copy of values that nodes must not share.
	Configure func(c *raft.Config)
	// Coded says that followers need not get full copies.
	Coded bool
	// Deferred says that followers wait before they complete payloads.
	Deferred bool
}

// full is the name of the side that sends full copies.
const full = "full"

// FullCopies is Raft as it is.
func FullCopies() Side {
	return Side{Name: full, About: "full copies, Raft as it is", Configure: func(*raft.Config) {}}
}

// Coded is coded replication; policy makes a node's own policy, nil is the
// default one. change has the last word on the options; nil: as they are.
func Coded(name, about string, policy func(voters int) ecraft.Policy, change func(*raft.Coding)) Side {
	return Side{
		Name: name, About: about, Coded: true,
		Configure: func(c *raft.Config) {
			c.Coding = &raft.Coding{}
			if policy != nil {
				_, cs, _ := c.Storage.InitialState() // a cluster's storage has one
				c.Coding.Policy = policy(len(cs.GetVoters()))
			}
			if change != nil {
				change(c.Coding)
			}
		},
	}
}

// Ours is coded replication as it is by default.
func Ours() Side { return Coded("ours", "coded, the default policy: levels by estimate", nil, nil) }

// Sides returns the ways of replication that the core knows.
func Sides() []Side {
	return []Side{
		FullCopies(), Ours(),
		Coded("levelled", "coded, the highest level that the healthy can commit", func(int) ecraft.Policy { return ecraft.Levelled{} }, nil),
		Coded("fixed", "coded, the highest level whatever happens; riders for what then cannot commit",
			func(voters int) ecraft.Policy { return ecraft.Fixed(ecraft.Levels(voters)) }, nil),
	}
}

// GossipSides returns full copies, and coded entries with ways to gossip.
func GossipSides() []Side {
	sides := []Side{FullCopies(), Coded("eager", "coded, units pushed as soon as they are durable", nil, nil)}
	for _, d := range []struct{ gap, ticks int }{{400 << 10, 1}, {4 << 20, 5}} {
		s := Coded(fmt.Sprintf("gap %s", lab.Bytes(d.gap)),
			fmt.Sprintf("coded, pushed when %s behind the commit index, or %v later", lab.Bytes(d.gap), time.Duration(d.ticks)*tick),
			nil, func(c *raft.Coding) { c.GossipGap, c.GossipDelay = d.gap, d.ticks })
		s.Deferred = true
		sides = append(sides, s)
	}
	return sides
}

// Egress is the rate of a node's card, a gigabit, in bytes a second; Sync is the time
// of a sync of the node's disk; tick is the time between two ticks.
const (
	Egress = 125e6
	Sync   = 100 * time.Microsecond
	tick   = 10 * time.Millisecond
)

// lan returns a network of machines with one gigabit card each, 0.1 ms apart,
// whose disks sync in 0.1 ms.
func lan(voters int, seed uint64) vnet.Options {
	return network(voters, seed, 100*time.Microsecond)
}

// network is like lan, with a delay of its own.
func network(voters int, seed uint64, delay time.Duration) vnet.Options {
	o := vnet.Options{
		Nodes: make([]vnet.Node, voters),
		Link:  func(_, _ uint64) vnet.Link { return vnet.Link{Delay: delay} },
		Seed:  seed,
		Tick:  tick,
		// What a transport finds out when a connection is refused.
		Notice: 2*delay + time.Millisecond,
	}
	for i := range o.Nodes {
		o.Nodes[i] = vnet.Node{Egress: Egress, Sync: Sync}
	}
	return o
}

// addLearners adds learners to the nodes of a cluster.
func addLearners(o *vnet.Options, n int) {
	for range n {
		o.Nodes = append(o.Nodes, o.Nodes[0])
	}
	o.Learners = n
}

// Use makes all nodes of a cluster replicate in the way of a side.
func (s Side) Use(o *vnet.Options) {
	o.Configure = func(_ uint64, c *raft.Config) { s.Configure(c) }
}
