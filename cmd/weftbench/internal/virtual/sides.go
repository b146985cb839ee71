// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"time"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Side is a way to replicate that runs in the real core.
type Side struct {
	Name, About string
	// Configure makes a node's configuration that of this side. Each node gets
	// what it must not share.
	Configure func(c *raft.Config)
	// Coded says that followers need not get full copies.
	Coded bool
	// Deferred says that followers wait before they complete payloads.
	Deferred bool
}

// FullCopies is Raft as it is.
func FullCopies() Side {
	return Side{
		Name: "full", About: "full copies, Raft as it is",
		Configure: func(*raft.Config) {},
	}
}

// Egress is what a node's card sends, a gigabit, in bytes a second; Sync is what
// its disk takes to make something durable.
const (
	Egress = 125e6
	Sync   = 100 * time.Microsecond
)

// LAN returns a network of machines with one gigabit card each, 0.1 ms apart,
// whose disks sync in 0.1 ms.
func LAN(voters int, seed uint64) vnet.Options {
	return Network(voters, seed, 100*time.Microsecond)
}

// Network is like LAN, with a delay of its own.
func Network(voters int, seed uint64, delay time.Duration) vnet.Options {
	o := vnet.Options{
		Nodes: make([]vnet.Node, voters),
		Link:  func(_, _ uint64) vnet.Link { return vnet.Link{Delay: delay} },
		Seed:  seed,
		Tick:  10 * time.Millisecond,
		// What a transport finds out when a connection is refused.
		Notice: 2*delay + time.Millisecond,
	}
	for i := range o.Nodes {
		o.Nodes[i] = vnet.Node{Egress: Egress, Sync: Sync}
	}
	return o
}

// Use makes all nodes of a cluster replicate in the way of a side.
func (s Side) Use(o *vnet.Options) {
	o.Configure = func(_ uint64, c *raft.Config) { s.Configure(c) }
}

// Keep bounds a node's log for entries of a size: some 16 MB of what was
// applied, at least 16 entries.
func Keep(size int) int { return max(16, (16<<20)/size) }

// Sides returns the ways of replication that the core knows.
func Sides() []Side { return []Side{FullCopies()} }

// GossipSides returns full copies, and coded entries with each way to gossip.
func GossipSides() []Side { return []Side{FullCopies()} }
