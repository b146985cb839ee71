// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// errDown is returned by Propose where the node is dead or paused.
var errDown = errors.New("vnet: the node is down")

// Cluster is a group of nodes in virtual time. Its methods must not be called
// from several goroutines at a time.
type Cluster struct {
	world.Agenda
	opts  Options
	net   *world.Network
	nodes []*node
	// leader is who leads, 0: nobody; reign numbers leaders.
	leader, reign uint64
	loads         []*Load
	err           error

	// sums are the digests at the indexes from start on, of the first replica
	// to apply each entry.
	sums  []uint32
	start uint64

	events, refused, snapshots uint64
}

// begin is where logs begin: a snapshot at this index has the configuration.
const begin = 1

// New makes a cluster. Nobody leads at first: see [Cluster.Campaign].
func New(opts Options) (*Cluster, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.Tick == 0 {
		opts.Tick = defaultTick
	}
	if opts.Keep == 0 {
		opts.Keep = defaultKeep
	}
	if opts.KeepBytes == 0 {
		opts.KeepBytes = defaultKeepBytes
	}
	world.CollectLess()
	c := &Cluster{
		opts:  opts,
		sums:  []uint32{0},
		start: begin,
	}
	c.net = world.NewNetwork(&c.Agenda, world.Draws{}, len(opts.Nodes), &world.Traits{})
	conf := &pb.ConfState{}
	for i := range opts.Nodes {
		if i < len(opts.Nodes)-opts.Learners {
			conf.Voters = append(conf.Voters, uint64(i)+1)
		} else {
			conf.Learners = append(conf.Learners, uint64(i)+1)
		}
	}
	for i, hw := range opts.Nodes {
		if err := c.add(i, hw, conf); err != nil {
			return nil, err
		}
	}
	return c, c.connect()
}

// add makes a node.
func (c *Cluster) add(i int, hw Node, conf *pb.ConfState) error {
	n := &node{
		c: c, id: uint64(i) + 1, index: i, hardware: hw,
		store: raft.NewMemoryStorage(), applied: begin, mark: begin,
		draws: world.NewDraws(c.opts.Seed, uint64(i)+1),
	}
	n.disk.n = n
	n.card = port{
		agenda: &c.Agenda, rate: hw.Egress,
		begun: func(k *packet) { k.wire.begun(k) },
		sent:  func(k *packet) { k.wire.carded(k) },
	}
	c.nodes = append(c.nodes, n)
	one := uint64(begin)
	err := n.store.ApplySnapshot(&pb.Snapshot{
		Data:     make([]byte, 4),
		Metadata: &pb.SnapshotMetadata{ConfState: conf, Index: &one, Term: &one},
	})
	if err != nil {
		return err
	}
	if err := n.store.SetHardState(&pb.HardState{Term: &one, Vote: new(uint64), Commit: &one}); err != nil {
		return err
	}
	return n.start()
}

// connect makes the wires.
func (c *Cluster) connect() error {
	for _, from := range c.nodes {
		from.wires = make([]*wire, len(c.nodes))
		for _, to := range c.nodes {
			if from == to {
				continue
			}
			from.wires[to.index] = newWire(c, from, to)
			if c.opts.Link == nil {
				continue
			}
			if err := c.SetLink(from.id, to.id, c.opts.Link(from.id, to.id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// node returns the node with an id, or nil.
func (c *Cluster) node(id uint64) *node {
	if id == 0 || id > uint64(len(c.nodes)) {
		return nil
	}
	return c.nodes[id-1]
}

// fail keeps the first error, which ends the run.
func (c *Cluster) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// compare holds a replica to the others.
func (c *Cluster) compare(n *node) {
	at := n.applied - c.start
	switch {
	case at == uint64(len(c.sums)):
		c.sums = append(c.sums, n.digest)
	case at > uint64(len(c.sums)):
		c.fail(fmt.Errorf("vnet: node %d applied %d, but nobody applied what is before", n.id, n.applied))
	case c.sums[at] != n.digest:
		c.fail(fmt.Errorf("vnet: node %d is not as the others at index %d", n.id, n.applied))
	}
}

func (c *Cluster) digestAt(index uint64) (uint32, bool) {
	at := index - c.start
	if at >= uint64(len(c.sums)) {
		return 0, false
	}
	return c.sums[at], true
}

// changed hears of a node's new role.
func (c *Cluster) changed(n *node) {
	if n.role == raft.StateLeader {
		c.leader = n.id
		c.reign++
		for _, l := range c.loads {
			c.After(0, l.resend)
		}
	} else if c.leader == n.id {
		c.leader = 0
	}
	if c.opts.OnRole != nil {
		c.opts.OnRole(n.id, n.role)
	}
}

// onApply tells all listeners that a node has applied an entry.
func (c *Cluster) onApply(n *node, e *pb.Entry) {
	if c.opts.OnApply != nil {
		c.opts.OnApply(n.id, e)
	}
	for _, l := range c.loads {
		l.applied(n, e)
	}
}

// Err returns the first failure of the run: replicas that differ, a contract
// broken by a core. nil if all is well.
func (c *Cluster) Err() error { return c.err }

// Step lets the next event happen, if there is one up to an instant.
func (c *Cluster) Step(until time.Duration) bool {
	if c.err != nil || !c.Agenda.Step(until) {
		return false
	}
	c.events++
	return true
}

// Run lets time pass up to an instant.
func (c *Cluster) Run(until time.Duration) error {
	for c.Step(until) {
	}
	return c.err
}

// RunUntil lets time pass until done returns true, or until an instant if done does
// not. The result is done's last answer.
func (c *Cluster) RunUntil(until time.Duration, done func() bool) (bool, error) {
	for !done() {
		if !c.Step(until) {
			return false, c.err
		}
	}
	return true, c.err
}
