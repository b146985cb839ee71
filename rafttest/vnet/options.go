// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Options describe a cluster. The zero value of every field but Nodes is useful.
type Options struct {
	// Nodes are the members: the first has id 1.
	Nodes []Node
	// Learners is how many of them, at the end, do not vote.
	Learners int
	// Link returns the link from a node to another. nil: links without delay.
	Link func(from, to uint64) Link
	// Seed feeds all that is drawn: jitter, stalls, election timeouts.
	Seed uint64

	// Tick is the time between two ticks of a node: 100 ms if it is 0. An
	// election timeout is 10 to 20 ticks, a heartbeat one.
	Tick time.Duration
	// Keep is how many applied entries a node keeps in its log for nodes that
	// lag, and KeepBytes how many bytes of payload, if fewer: at least so much,
	// at most twice. The values for 0 are 4096 and 16 MB.
	Keep, KeepBytes int
	// Notice is how long after a message reached a dead node its sender is told
	// that the node is unreachable, as by a refused connection. 0: never.
	Notice time.Duration
	// Configure has the last word on a node's configuration. nil: as it is.
	Configure func(id uint64, c *raft.Config)

	// OnApply hears of each entry applied by a node, OnCommit of each commit
	// index learnt, OnRole of each new role. nil: not wanted. The calls may
	// propose, and plan events, but not run the cluster.
	OnApply  func(node uint64, e *pb.Entry)
	OnCommit func(node, index uint64)
	OnRole   func(node uint64, role raft.StateType)
	// OnRead hears of each read answered by a core, OnLog of entries handed by a
	// node to its disk, OnDurable of entries on the disk, OnArrive of each
	// message before the node takes the message. nil: not wanted.
	OnRead    func(node uint64, rs raft.ReadState)
	OnLog     func(node uint64, ents []*pb.Entry)
	OnDurable func(node uint64, ents []*pb.Entry)
	OnArrive  func(node uint64, m *pb.Message)
}

// Node is the hardware of a node.
type Node struct {
	// Egress is the rate of the node's network card, in bytes a second; 0: no bound.
	Egress float64
	// Sync is the time of a sync of its disk.
	Sync time.Duration
	// Disk is the rate of writes to the node's disk, in bytes a second; 0: no bound.
	Disk float64
	// Work is the processor's time for a message, sent or received. An arriving
	// message waits until the processor is free; a sent message does not. 0: no
	// time.
	Work time.Duration
}

// Link is the connection of a node to another, in one direction.
type Link struct {
	// Delay is the time of a message beside its transmission, Jitter the mean
	// of an addition, drawn from an exponential distribution.
	Delay, Jitter time.Duration
	// Rate is in bytes a second; 0, or more than the card has: no bound of its
	// own.
	Rate float64
	// StallChance is the probability that a message, and with it all later messages of
	// its class, waits for another Stall, as after a lost packet.
	StallChance float64
	Stall       time.Duration
}

// defaults of Options.
const (
	defaultTick      = 100 * time.Millisecond
	defaultKeep      = 4096
	defaultKeepBytes = 16 << 20
	electionTicks    = 10
	maxNodes         = 64
	maxInflight      = 4096
	maxMessageSize   = 1 << 20
)

// Validate reports every mistake in the options, joined into one error.
func (o *Options) Validate() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("vnet: Options."+format, args...))
		}
	}
	refuse(len(o.Nodes) == 0 || len(o.Nodes) > maxNodes, "Nodes has %d nodes; 1 to %d are possible", len(o.Nodes), maxNodes)
	refuse(o.Learners < 0 || o.Learners > 0 && o.Learners >= len(o.Nodes), "Learners is %d of %d nodes; at least one must vote", o.Learners, len(o.Nodes))
	refuse(o.Tick < 0, "Tick is %v; it must not be negative", o.Tick)
	refuse(o.Notice < 0, "Notice is %v; it must not be negative", o.Notice)
	refuse(o.Keep < 0, "Keep is %d; it must not be negative", o.Keep)
	refuse(o.KeepBytes < 0, "KeepBytes is %d; it must not be negative", o.KeepBytes)
	for i, n := range o.Nodes {
		if err := n.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("vnet: Options.Nodes[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Validate reports the first negative quantity.
func (n Node) Validate() error {
	switch {
	case n.Egress < 0:
		return fmt.Errorf("vnet: Node.Egress is %v; it must not be negative", n.Egress)
	case n.Sync < 0:
		return fmt.Errorf("vnet: Node.Sync is %v; it must not be negative", n.Sync)
	case n.Disk < 0:
		return fmt.Errorf("vnet: Node.Disk is %v; it must not be negative", n.Disk)
	case n.Work < 0:
		return fmt.Errorf("vnet: Node.Work is %v; it must not be negative", n.Work)
	}
	return nil
}

// Validate reports the first quantity that is out of bounds.
func (l Link) Validate() error {
	switch {
	case l.Delay < 0:
		return fmt.Errorf("vnet: Link.Delay is %v; it must not be negative", l.Delay)
	case l.Jitter < 0:
		return fmt.Errorf("vnet: Link.Jitter is %v; it must not be negative", l.Jitter)
	case l.Rate < 0:
		return fmt.Errorf("vnet: Link.Rate is %v; it must not be negative", l.Rate)
	case l.StallChance < 0 || l.StallChance > 1:
		return fmt.Errorf("vnet: Link.StallChance is %v; it must lie in [0, 1]", l.StallChance)
	case l.Stall < 0:
		return fmt.Errorf("vnet: Link.Stall is %v; it must not be negative", l.Stall)
	}
	return nil
}
