// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// setup describes a group to run.
type setup struct {
	net    Network
	policy *Policy
	seed   uint64
	// keys is the number of keys, value the bytes of a value.
	keys, value int
	// learners is the number of nodes, at the end of the list, that do not vote.
	learners int
	// wanted overrides the responders of the network; tuner chooses the responders instead.
	wanted []leases.Want
	tuner  *leases.TunerConfig
	// span returns the span of a key; nil: each key is a span of its own.
	span func(key int) leases.Span
	// work is the processor time of a message, read the processor time of a read.
	work, read time.Duration
	// jitter is the mean of the additional delay of a message.
	jitter time.Duration
	// leased are settings of leases for use by the run itself.
	leased raft.Leases
	// leases changes the settings of leases; nil: no change.
	leases func(*raft.Leases)
}

// Settings of leases: the settings of the paper for long links.
const (
	leaseTime  = 2500 * time.Millisecond
	failTime   = 1200 * time.Millisecond
	resolution = time.Millisecond
)

// group is a running group.
type group struct {
	setup
	c     *vnet.Cluster
	rng   *rand.Rand
	nodes []*replica // by id - 1
	boots map[uint64]uint64
	// open are the ops that clients wait for, by number; reads are the open questions to cores.
	open   map[uint64]*op
	lastOp uint64
	reads  map[uint64]func(index uint64)
	asked  uint64
	check  checker
	// done is called for each finished op.
	done func(*op)
}

// newGroup starts a group and lets the group settle: the leader of the network leads, and the
// responders can serve reads.
func newGroup(s setup) (*group, error) {
	g := &group{
		setup: s, rng: rand.New(rand.NewPCG(s.seed, 1)), boots: map[uint64]uint64{},
		open: map[uint64]*op{}, reads: map[uint64]func(uint64){}, check: newChecker(s.keys),
	}
	if g.span == nil {
		g.span = keySpan
	}
	if g.wanted == nil && len(s.net.Responders) > 0 {
		g.wanted = []leases.Want{{Nodes: s.net.Responders}}
	}
	for i := range s.net.Sites {
		g.nodes = append(g.nodes, newReplica(g, uint64(i)+1))
	}
	o := vnet.Options{
		Nodes: make([]vnet.Node, len(g.nodes)), Learners: s.learners, Seed: s.seed, Tick: s.net.Tick, Keep: 1 << 30, KeepBytes: 1 << 40,
		Link: func(from, to uint64) vnet.Link {
			return vnet.Link{Delay: s.net.RoundTrip(from, to) / 2, Jitter: s.jitter}
		},
		Configure: g.configure,
		OnApply:   func(id uint64, e *pb.Entry) { g.node(id).apply(e) },
		OnCommit:  func(id, index uint64) { g.node(id).committed(index) },
		OnRead:    g.answered,
		OnLog:     func(id uint64, ents []*pb.Entry) { g.node(id).log.add(ents) },
		OnDurable: func(id uint64, ents []*pb.Entry) { g.node(id).stored(ents) },
		OnArrive:  func(id uint64, m *pb.Message) { g.node(id).arrives(m) },
	}
	for i := range o.Nodes {
		o.Nodes[i] = vnet.Node{Egress: virtual.Egress, Sync: virtual.Sync, Work: s.work}
	}
	var err error
	if g.c, err = vnet.New(o); err != nil {
		return nil, err
	}
	if err := g.elect(s.net.Leader); err != nil {
		return nil, err
	}
	ok, err := g.c.RunUntil(g.c.Now()+time.Minute, g.settled)
	if err == nil && !ok {
		err = fmt.Errorf("%s in %s: responders are not stable after a minute", s.policy.Name, s.net.Name)
	}
	g.sweep()
	return g, err
}

// elect waits for a leader, and makes the leader hand over to the leader of the network. With
// leases no node votes for a while at first.
func (g *group) elect(id uint64) error {
	for range 10 {
		if lead := g.c.Leader(); lead != 0 && lead != id {
			_ = g.c.Do(lead, 0, func(rn *raft.RawNode) { rn.TransferLeader(id) })
		}
		if ok, err := g.c.RunUntil(g.c.Now()+50*g.net.Tick, func() bool { return g.c.Leader() == id }); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s in %s: node %d does not become leader", g.policy.Name, g.net.Name, id)
}

func (g *group) node(id uint64) *replica { return g.nodes[id-1] }

// configure sets the leases of a node's configuration, as the policy needs.
func (g *group) configure(id uint64, c *raft.Config) {
	if !g.policy.leases {
		return
	}
	g.boots[id]++
	c.Leases = &raft.Leases{
		Tick: g.net.Tick, Boot: g.boots[id], Lease: leaseTime, Fail: failTime, Resolution: resolution,
		Hold: 4 * g.net.Tick, Notes: g.policy.notes, Tuner: g.tuner, Spans: g.spansOf,
	}
	if g.policy.responders && g.tuner == nil {
		c.Leases.Wanted = g.wanted
	}
	if g.setup.leases != nil {
		g.setup.leases(c.Leases)
	}
}

// settled reports whether all nodes know the leader, and the leases of the policy are stable.
func (g *group) settled() bool {
	for _, r := range g.nodes {
		if g.c.Core(r.id).BasicStatus().Lead != g.net.Leader || g.c.Committed(r.id) < g.c.Committed(g.net.Leader) {
			return false
		}
	}
	if !g.policy.leases {
		return true
	}
	stable := func(id uint64) bool { return g.c.Core(id).LeaseStatus().Stable }
	if !stable(g.net.Leader) {
		return false
	}
	for id := range g.nodes {
		if g.responds(uint64(id)+1) && !stable(uint64(id)+1) {
			return false
		}
	}
	return true
}

// responds reports whether a node is a responder of every key, as long as none is removed.
func (g *group) responds(id uint64) bool {
	if !g.policy.responders || g.tuner != nil || len(g.wanted) == 0 || g.wanted[0].Span != (leases.Span{}) {
		return false
	}
	return slices.Contains(g.wanted[0].Nodes, leases.NodeID(id))
}

// majority is the number of voters in a majority.
func (g *group) majority() int { return (len(g.nodes)-g.learners)/2 + 1 }

// lead returns the node that rn takes for the leader, or nil.
func (g *group) lead(rn *raft.RawNode) *replica {
	if id := rn.BasicStatus().Lead; id != 0 {
		return g.node(id)
	}
	return nil
}

// ask asks the core of a node for the index of a read of a key.
func (r *replica) ask(rn *raft.RawNode, key int, then func(index uint64)) {
	g := r.g
	g.asked++
	g.reads[g.asked] = then
	ctx := binary.LittleEndian.AppendUint64(nil, g.asked)
	if g.policy.leases {
		rn.ReadIndexSpans(ctx, g.span(key))
	} else {
		rn.ReadIndex(ctx)
	}
}

// answered is called with each answer of a core.
func (g *group) answered(_ uint64, rs raft.ReadState) {
	id := binary.LittleEndian.Uint64(rs.RequestCtx)
	if then := g.reads[id]; then != nil {
		delete(g.reads, id)
		then(rs.Index)
	}
}

// A payload is the number of an op, its key, and a value.
const keyAt, valueAt = 8, 12

func (g *group) payload(o *op) []byte {
	data := make([]byte, valueAt+g.value)
	binary.LittleEndian.PutUint64(data, o.id)
	binary.BigEndian.PutUint32(data[keyAt:], uint32(o.key))
	return data
}

func keyOf(data []byte) (key int, ok bool) {
	if len(data) < valueAt {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(data[keyAt:])), true
}

// keySpan returns the span of a single key.
func keySpan(key int) leases.Span {
	k := binary.BigEndian.AppendUint32(nil, uint32(key))
	return leases.Span{Start: string(k), End: string(k) + "\x00"}
}

func (g *group) spansOf(data []byte) []leases.Span {
	key, ok := keyOf(data)
	if !ok {
		return nil
	}
	return []leases.Span{g.span(key)}
}
