// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// core is a Cluster of real cores over a simulated network. Its time begins after a leader is
// elected and every member is known to read coded entries.
type core struct {
	c      *vnet.Cluster
	net    Network
	start  time.Duration
	data   []byte
	usage  Usage
	before uint64 // bytes that the leader had sent at the start

	last uint64 // index of the leader's last proposal

	onCommit  func(index uint64, now time.Duration)
	committed uint64
	proposed  map[uint64]bool // not committed
}

// leader is the node that leads; follower i of the network is node i+2.
const leader = 1

func node(follower int) uint64 { return uint64(follower) + 2 }

// newCore returns a cluster at time 0.
func newCore(net Network, side Side, seed uint64) (*core, error) {
	k := &core{net: net, proposed: map[uint64]bool{}}
	k.net.Links = append([]Link(nil), net.Links...)
	policy, ok := side.policy().(ecraft.Policy)
	if !ok {
		return nil, fmt.Errorf("side %s: the core runs policies of strips only", side.Name)
	}
	opts := vnet.Options{
		Nodes: make([]vnet.Node, len(net.Links)+1), Seed: seed, Tick: heartbeat, KeepBytes: 64 << 20,
		Link: k.link, OnCommit: k.learnt,
		Configure: func(id uint64, c *raft.Config) {
			c.MaxInflightMsgs = windowEntries
			c.Coding = &raft.Coding{Threshold: threshold, Policy: ecraft.Levelled{}}
			if id == leader {
				c.Coding.Policy, c.Coding.Recorder = k.witness(policy), k
			}
		},
	}
	for i := range opts.Nodes {
		opts.Nodes[i] = k.node(uint64(i) + 1)
	}
	c, err := vnet.New(opts)
	if err != nil {
		return nil, err
	}
	k.c = c
	if err := c.Elect(leader); err != nil {
		return nil, err
	}
	active := func() bool { return c.Core(leader).CodingStatus().Active }
	if done, err := c.RunUntil(c.Now()+time.Minute, active); err != nil || !done {
		return nil, fmt.Errorf("within a minute not every member reads coded entries: %w", err)
	}
	k.start, k.before, k.committed = c.Now(), c.SentBy(leader).Total(), c.Committed(leader)
	return k, nil
}

// node returns a node's hardware: followers are bound by their links.
func (k *core) node(id uint64) vnet.Node {
	if id == leader {
		return vnet.Node{Egress: k.net.Egress}
	}
	l := k.net.Links[id-2]
	return vnet.Node{Sync: l.Sync, Disk: l.Disk}
}

// link returns the link between two nodes. A follower's link has its rate only in the direction
// from the leader, and two followers are connected by the slower of their links.
func (k *core) link(from, to uint64) vnet.Link {
	as := func(l Link) vnet.Link {
		return vnet.Link{Delay: l.Delay, Jitter: l.Jitter, StallChance: l.Stall, Stall: l.StallTime}
	}
	switch {
	case to == leader:
		return as(k.net.Links[from-2])
	case from == leader:
		l := as(k.net.Links[to-2])
		l.Rate = k.net.Links[to-2].Rate
		return l
	}
	a, b := k.net.Links[from-2], k.net.Links[to-2]
	if a.Delay > b.Delay {
		return as(a)
	}
	return as(b)
}

// witness is the leader's policy, and notes the index of the last proposal. Of the policy's optional
// interfaces the core sees Observer alone.
type witness struct {
	ecraft.Policy
	ecraft.Observer
	k *core
}

func (k *core) witness(policy ecraft.Policy) *witness {
	observer, ok := policy.(ecraft.Observer)
	if !ok {
		observer = adaptive.New(adaptive.Options{}) // it listens, and nobody asks it
	}
	return &witness{policy, observer, k}
}

func (w *witness) Proposed(index uint64, size int, now time.Duration) {
	w.k.last = index
	w.Observer.Proposed(index, size, now)
}

// RecordCoding implements raft.CodingRecorder, for the leader.
func (k *core) RecordCoding(e raft.CodingEvent) {
	if e.Kind == raft.CodingHedged || e.Kind == raft.CodingFallback {
		k.usage.Hedges++
	}
}

// learnt is called when a node has learnt a commit index.
func (k *core) learnt(node, index uint64) {
	if node != leader || k.onCommit == nil {
		return
	}
	for ; k.committed < index; k.committed++ {
		if at := k.committed + 1; k.proposed[at] {
			delete(k.proposed, at)
			k.onCommit(at, k.Now())
		}
	}
}

func (k *core) Err() error                             { return k.c.Err() }
func (k *core) Now() time.Duration                     { return k.c.Now() - k.start }
func (k *core) OnCommit(f func(uint64, time.Duration)) { k.onCommit = f }
func (k *core) Schedule(at time.Duration, do func())   { k.c.At(at+k.start, do) }
func (k *core) Step() bool                             { return k.c.Step(forever) }
func (k *core) Kill(follower int)                      { k.c.Kill(node(follower)) }

const forever = time.Duration(1<<63 - 1)

// Propose makes the leader append an entry. No other node campaigns while heartbeats of the leader
// arrive, and the leader has no bound on uncommitted entries.
func (k *core) Propose(size int) uint64 {
	if len(k.data) < size {
		k.data = make([]byte, size)
	}
	if err := k.c.Propose(leader, k.data[:size]); err != nil {
		panic(fmt.Sprintf("adaptive: the leader refuses a proposal: %v", err))
	}
	k.usage.Payload += int64(size)
	k.proposed[k.last] = true
	return k.last
}

func (k *core) Usage() Usage {
	u := k.usage
	sent := k.c.SentBy(leader)
	u.Egress = int64(sent.Total() - k.before)
	u.Hedged = int64(sent.Bytes[vnet.Rider])
	return u
}

func (k *core) Pause(follower int, until time.Duration) {
	k.c.Pause(node(follower))
	k.Schedule(until, func() { k.c.Resume(node(follower)) })
}

// Change changes the network from now on. A value out of bounds leaves its part of the network
// unchanged.
func (k *core) Change(f func(net *Network)) {
	f(&k.net)
	for i := range k.c.Nodes() {
		id := uint64(i) + 1
		_ = k.c.SetNode(id, k.node(id)) // checked by the cluster: nothing changes then
		for j := range k.c.Nodes() {
			if i != j {
				_ = k.c.SetLink(id, uint64(j)+1, k.link(id, uint64(j)+1)) // likewise
			}
		}
	}
}

var (
	_ Cluster             = (*core)(nil)
	_ ecraft.Observer     = (*witness)(nil)
	_ raft.CodingRecorder = (*core)(nil)
)
