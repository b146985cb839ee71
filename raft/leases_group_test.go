// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leaseGroup is a few nodes with leases in virtual time. Nothing goes wrong but what a
// test makes go wrong. Messages take a millisecond, writes half of one.
type leaseGroup struct {
	t      testing.TB
	now    time.Duration
	events leaseEvents
	seq    int
	nodes  map[uint64]*leaseNode
	voters []uint64
	cut    map[[2]uint64]bool // from, to
	// drop loses messages; sent hears of those that are not lost.
	drop func(m *pb.Message) bool
	sent func(m *pb.Message)
	// set changes settings of nodes as they start.
	set func(*raft.Config)
}

const (
	leaseTick     = 10 * time.Millisecond
	leaseTime     = 200 * time.Millisecond
	leaseFail     = 50 * time.Millisecond
	leasePatience = 90 * time.Millisecond // the least election timeout
)

type leaseNode struct {
	g        *leaseGroup
	id       uint64
	rn       *raft.RawNode
	disk     *raft.MemoryStorage
	boots    uint64
	up       bool
	stuck    bool // its disk does not end a write
	slow     bool // its host does not apply
	refuses  bool // its host refuses changes
	async    bool // its host writes asynchronously; else it sends, and writes in no time
	late     bool // its host reports changes as applied before they are in force, as etcd may
	lateBy   time.Duration
	keeps    func(m *pb.Message) bool // what its host has not reported yet
	waiting  []*pb.Message
	toApply  []*pb.Message
	applied  uint64
	conf     *pb.ConfState
	confAt   uint64
	readings map[string]uint64 // the index that a read was told
}

// Now is the clock of a node: another origin, and the same rate.
func (n *leaseNode) Now() time.Duration { return n.g.now + time.Duration(n.id)*time.Hour }

type leaseEvent struct {
	at  time.Duration
	seq int
	run func()
}

type leaseEvents []leaseEvent

func (e leaseEvents) Len() int { return len(e) }
func (e leaseEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e leaseEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *leaseEvents) Push(x any)   { *e = append(*e, x.(leaseEvent)) }
func (e *leaseEvents) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// newLeaseGroup starts a group of n members, of which the first so many vote. Node 1
// leads, and the wanted nodes are responders of every key when it returns.
func newLeaseGroup(t testing.TB, members, voters int, wanted []leases.NodeID, set func(*raft.Config)) *leaseGroup {
	g := &leaseGroup{t: t, nodes: map[uint64]*leaseNode{}, cut: map[[2]uint64]bool{}}
	g.set = func(c *raft.Config) {
		if wanted != nil {
			c.Leases.Wanted = []leases.Want{{Nodes: wanted}}
		}
		if set != nil {
			set(c)
		}
	}
	for id := uint64(1); id <= uint64(voters); id++ {
		g.voters = append(g.voters, id)
	}
	cs := &pb.ConfState{Voters: g.voters}
	for id := uint64(voters) + 1; id <= uint64(members); id++ {
		cs.Learners = append(cs.Learners, id)
	}
	for id := uint64(1); id <= uint64(members); id++ {
		g.add(id, cs)
	}
	require.NoError(t, g.nodes[1].rn.Campaign())
	g.nodes[1].work()
	g.until("node 1 leads by its lease", time.Second, func() bool { return g.stable(1) })
	for _, id := range wanted {
		g.until(fmt.Sprintf("node %d is stable", id), time.Second, func() bool { return g.stable(uint64(id)) })
	}
	return g
}

// add starts a node whose disk has a configuration.
func (g *leaseGroup) add(id uint64, cs *pb.ConfState) *leaseNode {
	n := &leaseNode{g: g, id: id, disk: raft.NewMemoryStorage(), conf: cs}
	if cs != nil {
		require.NoError(g.t, n.disk.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: cs,
		}}))
		n.applied = 1
	}
	g.nodes[id] = n
	n.start()
	return n
}

func (n *leaseNode) start() {
	n.boots++
	c := config(n.disk)
	c.ID, c.PreVote, c.CheckQuorum, c.Clock, c.AsyncStorageWrites = n.id, true, true, n, true
	c.Rand = oneRand{n.id}
	c.Applied = n.applied
	c.Leases = &raft.Leases{Tick: leaseTick, Boot: n.boots, Lease: leaseTime, Fail: leaseFail, Resolution: time.Microsecond}
	n.g.set(c)
	n.rn, n.async = newNode(n.g.t, c), c.AsyncStorageWrites
	n.up, n.stuck, n.readings, n.waiting, n.toApply = true, false, map[string]uint64{}, nil, nil
	n.clock()
}

// oneRand has nodes be patient in the order of their ids.
type oneRand struct{ id uint64 }

func (r oneRand) IntN(n int) int { return int(r.id) % n }

// stop ends a node's process: what is not on its disk is lost.
func (n *leaseNode) stop() {
	n.up, n.rn = false, nil
	first, err := n.disk.FirstIndex()
	require.NoError(n.g.t, err)
	n.applied = first - 1
}

// restart starts it again from its disk.
func (n *leaseNode) restart() { n.start(); n.work() }

func (n *leaseNode) clock() {
	n.later(leaseTick, func() {
		n.rn.Tick()
		n.clock()
	})
}

// later plans something of this process.
func (n *leaseNode) later(d time.Duration, run func()) {
	boots := n.boots
	n.g.after(d, func() {
		if n.up && n.boots == boots {
			run()
			n.work()
		}
	})
}

func (g *leaseGroup) after(d time.Duration, run func()) {
	g.seq++
	heap.Push(&g.events, leaseEvent{at: g.now + d, seq: g.seq, run: run})
}

// work does what the node asks its host for.
func (n *leaseNode) work() {
	for n.rn.HasReady() {
		rd := n.rn.Ready()
		for _, rs := range rd.ReadStates {
			n.readings[string(rs.RequestCtx)] = rs.Index
		}
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				n.waiting = append(n.waiting, m)
				if !n.stuck {
					n.later(time.Millisecond/2, n.write)
				}
			case raft.LocalApplyThread:
				n.toApply = append(n.toApply, m)
			default:
				n.g.send(m)
			}
		}
		if !n.async {
			n.save(rd)
		} else if !n.slow {
			n.apply()
		}
	}
}

func (n *leaseNode) save(rd raft.Ready) {
	if !raft.IsEmptyHardState(rd.HardState) {
		require.NoError(n.g.t, n.disk.SetHardState(rd.HardState))
	}
	require.NoError(n.g.t, n.disk.Append(rd.Entries))
	n.rn.Advance(rd)
}

// write makes what waits durable, and sends what waited for that.
func (n *leaseNode) write() {
	if n.stuck {
		return
	}
	for _, m := range n.waiting {
		if s := m.GetSnapshot(); s != nil {
			require.NoError(n.g.t, n.disk.ApplySnapshot(s))
			n.applied, n.conf = s.GetMetadata().GetIndex(), s.GetMetadata().GetConfState()
		}
		if m.Term != nil {
			require.NoError(n.g.t, n.disk.SetHardState(&pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}))
		}
		require.NoError(n.g.t, n.disk.Append(m.GetEntries()))
		for _, r := range m.GetResponses() {
			n.answer(r)
		}
	}
	n.waiting = nil
}

func (n *leaseNode) answer(m *pb.Message) {
	if n.keeps != nil && n.keeps(m) {
		return
	}
	if m.GetTo() == n.id {
		require.NoError(n.g.t, n.rn.Step(m))
		return
	}
	n.g.send(m)
}

func (n *leaseNode) apply() {
	list := n.toApply
	n.toApply = nil
	for _, m := range list {
		for _, e := range m.GetEntries() {
			if cc := changeOf(n.g.t, e); cc != nil && !n.refuses {
				change := func() { n.conf, n.confAt = n.rn.ApplyConfChange(cc), e.GetIndex() }
				if n.late {
					n.later(max(n.lateBy, 3*time.Millisecond), change)
				} else {
					change()
				}
			}
			n.applied = e.GetIndex()
		}
		for _, r := range m.GetResponses() {
			n.answer(r)
		}
	}
}

func changeOf(t testing.TB, e *pb.Entry) *pb.ConfChangeV2 {
	switch e.GetType() {
	case pb.EntryConfChangeV2:
		cc := &pb.ConfChangeV2{}
		require.NoError(t, proto.Unmarshal(e.GetData(), cc))
		return cc
	case pb.EntryConfChange:
		cc := &pb.ConfChange{}
		require.NoError(t, proto.Unmarshal(e.GetData(), cc))
		return cc.AsV2()
	}
	return nil
}

func (g *leaseGroup) send(m *pb.Message) {
	to := g.nodes[m.GetTo()]
	if to == nil || g.cut[[2]uint64{m.GetFrom(), m.GetTo()}] || g.drop != nil && g.drop(m) {
		return
	}
	if g.sent != nil {
		g.sent(m)
	}
	g.after(time.Millisecond, func() {
		if to.up {
			_ = to.rn.Step(m)
			to.work()
		}
	})
}

// pass lets time pass.
func (g *leaseGroup) pass(d time.Duration) {
	until := g.now + d
	for len(g.events) > 0 && g.events[0].at <= until {
		e := heap.Pop(&g.events).(leaseEvent)
		g.now = e.at
		e.run()
	}
	g.now = until
}

// until lets time pass until something holds, and returns how long that took.
func (g *leaseGroup) until(what string, atMost time.Duration, holds func() bool) time.Duration {
	g.t.Helper()
	began := g.now
	for !holds() {
		require.Less(g.t, g.now-began, atMost, "%s: not after %v", what, atMost)
		g.pass(time.Millisecond / 10)
	}
	return g.now - began
}

// sever loses all that is sent between two nodes; mend ends that, everywhere.
func (g *leaseGroup) sever(a, b uint64) { g.cut[[2]uint64{a, b}], g.cut[[2]uint64{b, a}] = true, true }
func (g *leaseGroup) mend()             { clear(g.cut) }

func (g *leaseGroup) isolate(id uint64) {
	for other := range g.nodes {
		g.sever(id, other)
	}
}

// stable reports whether a node would answer reads of every key.
func (g *leaseGroup) stable(id uint64) bool {
	n := g.nodes[id]
	return n.up && n.rn.LeaseStatus().Stable
}

// leader returns the node that leads the highest term, or nil.
func (g *leaseGroup) leader() (best *leaseNode) {
	for _, id := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.nodes[id]
		if n.up && n.rn.BasicStatus().RaftState == raft.StateLeader && (best == nil || n.term() > best.term()) {
			best = n
		}
	}
	return best
}

func (n *leaseNode) term() uint64   { return n.rn.BasicStatus().GetTerm() }
func (n *leaseNode) commit() uint64 { return n.rn.BasicStatus().GetCommit() }

// read asks for a read, and returns its name.
func (n *leaseNode) read(spans ...leases.Span) string {
	ctx := fmt.Sprint("read ", n.g.now, len(n.readings))
	n.rn.ReadIndexSpans([]byte(ctx), spans...)
	n.work()
	return ctx
}

// told reports whether a read was told its index.
func (n *leaseNode) told(ctx string) bool { _, ok := n.readings[ctx]; return ok }

// write proposes an entry at the leader, and returns its index.
func (g *leaseGroup) write(data string) uint64 {
	g.t.Helper()
	l := g.leader()
	require.NoError(g.t, l.rn.Propose([]byte(data)))
	index := uint64(0)
	l.rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if id != l.id {
			index = max(index, pr.Next-1)
		}
	})
	l.work()
	return index
}
