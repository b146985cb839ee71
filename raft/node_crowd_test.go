// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

const (
	crowdNodes   = 3
	crowdWorkers = 8
	crowdCalls   = 250 // of each worker
	crowdTick    = 10 * time.Millisecond
	// crowdPatience is virtual time in which a call ends that waits for a leader, and nodes come to agree.
	crowdPatience = 10 * time.Minute
)

// crowd is a few Nodes with hosts, and goroutines that make all calls of all Nodes at once. Messages overtake each other,
// and some are lost. Time is virtual and goes on when all goroutines wait. The order in which goroutines meet is not
// drawn: what is checked holds in each.
type crowd struct {
	t       *testing.T
	set     func(*raft.Config)
	begun   time.Time
	members [crowdNodes + 1]*crowdMember // by id
	ending  chan struct{}
}

var allVoters = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}

// Now implements raft.Clock.
func (c *crowd) Now() time.Duration { return time.Since(c.begun) }

type crowdMember struct {
	*crowd
	id      uint64
	storage *raft.MemoryStorage
	node    atomic.Pointer[raft.Node]
	rnd     *rand.Rand // of the host

	life        sync.Mutex // of who stops and starts the node
	quit, ended chan struct{}

	mu      sync.Mutex
	applied [][]byte
	index   uint64
	conf    *pb.ConfState
}

// TestNodeTakesAllCallsAtOnce: whatever calls of a Node come at once, with contexts that end at any point, and Stops in
// between, each call returns, with an error that it may have; the group goes on; and no goroutine stays behind.
func TestNodeTakesAllCallsAtOnce(t *testing.T) {
	codes := func(c *raft.Config) {
		c.Coding = &raft.Coding{Threshold: 64, Policy: ecraft.Levelled{}, Memory: 16 << 10}
	}
	async := func(c *raft.Config) { c.AsyncStorageWrites, c.MaxEarlyApplySize = true, 4<<10 }
	leased := func(c *raft.Config) {
		c.Leases = &raft.Leases{Tick: crowdTick, Lease: 200 * time.Millisecond, Fail: 50 * time.Millisecond, Wanted: allVoters}
	}
	for name, set := range map[string][]func(*raft.Config){
		"plain": nil, "async": {async}, "coded": {codes}, "coded, async": {codes, async}, "leased": {leased}, "coded, leased, async": {codes, leased, async},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &crowd{t: t, begun: time.Now(), ending: make(chan struct{})}
				c.set = func(cfg *raft.Config) {
					cfg.Clock = c
					for _, f := range set {
						f(cfg)
					}
				}
				c.run()
			})
		})
	}
}

func (c *crowd) run() {
	for id := uint64(1); id <= crowdNodes; id++ {
		c.members[id] = &crowdMember{crowd: c, id: id, storage: newStorage(c.t, 1, 2, 3), rnd: rand.New(rand.NewPCG(id, 2))}
		c.members[id].start()
	}
	go func() {
		ticker := time.NewTicker(crowdTick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				for _, m := range c.members[1:] {
					(*m.node.Load()).Tick()
				}
			case <-c.ending:
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for w := range uint64(crowdWorkers) {
		workers.Go(func() { c.callAll(rand.New(rand.NewPCG(w, 3))) })
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(crowdPatience):
		c.t.Fatal("calls do not return")
	}
	c.agree()
	close(c.ending)
	for _, m := range c.members[1:] {
		m.stop()
	}
}

// callAll makes calls of all nodes.
func (c *crowd) callAll(rnd *rand.Rand) {
	for range crowdCalls {
		m := c.members[1+rnd.IntN(crowdNodes)]
		ctx, end := drawContext(rnd)
		err := m.call(ctx, *m.node.Load(), rnd)
		end()
		for _, may := range []error{nil, raft.ErrProposalDropped, raft.ErrStopped, context.Canceled, context.DeadlineExceeded, leases.ErrNotLeader, raft.ErrNoLeases} {
			if errors.Is(err, may) {
				err = nil
			}
		}
		assert.NoError(c.t, err)
	}
}

// drawContext returns a context that ends much later, has ended, ends in a moment or after a while.
func drawContext(rnd *rand.Rand) (context.Context, context.CancelFunc) {
	after := time.Hour
	if rnd.IntN(4) == 0 {
		after = time.Duration(rnd.IntN(5)) * crowdTick
	}
	ctx, end := context.WithTimeout(context.Background(), after)
	switch rnd.IntN(4) {
	case 0:
		end()
	case 1:
		go end()
	}
	return ctx, end
}

func (m *crowdMember) call(ctx context.Context, n raft.Node, rnd *rand.Rand) error {
	some := 1 + rnd.Uint64N(crowdNodes)
	switch rnd.IntN(24) {
	default:
		return n.Propose(ctx, payload(rnd.Int(), 1+rnd.IntN(1000)))
	case 0:
		change := learn(4)
		if rnd.IntN(2) == 0 {
			change = remove(4)
		}
		return n.ProposeConfChange(ctx, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{change}})
	case 1:
		return n.Step(ctx, &pb.Message{Type: pb.MsgProp.Enum(), From: &some, Entries: []*pb.Entry{{Data: []byte("two")}, {Data: []byte("at once")}}})
	case 2:
		return n.Step(ctx, &pb.Message{Type: pb.MsgTimeoutNow.Enum(), From: &some, Term: new(n.Status().GetTerm())})
	case 3:
		return n.ReadIndex(ctx, []byte("read"))
	case 4:
		n.TransferLeadership(ctx, n.Status().Lead, some)
	case 5:
		return n.ForgetLeader(ctx)
	case 6:
		return n.Campaign(ctx)
	case 7:
		n.ReportUnreachable(some)
	case 8:
		n.ReportSnapshot(some, raft.SnapshotFailure)
	case 9:
		n.(raft.Densifier).Densify(rnd.IntN(2) == 0)
	case 10:
		return n.(raft.LeaseNode).SetResponders(ctx, allVoters)
	case 11:
		return n.(raft.LeaseNode).RetireLeases(ctx, rnd.IntN(2) == 0)
	case 12:
		_ = n.(raft.LeaseNode).LeaseStatus()
		return n.(raft.LeaseNode).ReadIndexSpans(ctx, []byte("read"), leases.Span{Start: "a", End: "b"})
	case 13:
		n.Tick()
	case 14:
		if rnd.IntN(4) == 0 && m.life.TryLock() { // time would stand still for who waits for a lock
			m.stop()
			m.start()
			m.life.Unlock()
		}
	}
	return nil
}

// start starts the node, and a host, from what is stored.
func (m *crowdMember) start() {
	snap, err := m.storage.Snapshot()
	require.NoError(m.t, err)
	m.restore(snap)
	c := config(m.storage)
	c.ID, c.Applied, c.PreVote, c.CheckQuorum = m.id, m.index, true, true
	c.MaxSizePerMsg, c.MaxInflightMsgs, c.MaxUncommittedEntriesSize = 4<<10, 4, 16<<10
	c.Rand = rand.New(rand.NewPCG(m.id, 1))
	m.set(c)
	node := raft.RestartNode(c)
	m.node.Store(&node)
	m.quit, m.ended = make(chan struct{}), make(chan struct{})
	go m.serve(node, c.AsyncStorageWrites, m.quit, m.ended)
}

// stop stops the node by several calls at once, looks at what is left, and ends the host.
func (m *crowdMember) stop() {
	node := *m.node.Load()
	var all sync.WaitGroup
	for range 3 {
		all.Go(node.Stop)
	}
	all.Wait()
	assert.ErrorIs(m.t, node.Propose(context.Background(), nil), raft.ErrStopped)
	assert.Zero(m.t, node.Status().ID)
	node.Advance()
	close(m.quit)
	<-m.ended
}

func (m *crowdMember) restore(snap *pb.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.conf, m.applied = snap.GetMetadata().GetIndex(), snap.GetMetadata().GetConfState(), nil
	if len(snap.GetData()) > 0 {
		m.applied = decodeAll(snap.GetData())
	}
}

// serve is the host.
func (m *crowdMember) serve(node raft.Node, async bool, quit <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	for {
		select {
		case <-quit:
			return
		case rd := <-node.Ready():
			if m.rnd.IntN(20) == 0 {
				time.Sleep(2 * crowdTick) // the host is busy; time is virtual
			}
			if !m.work(node, rd, async) {
				<-quit
				return
			}
		}
	}
}

// work does what a Ready asks for, and reports whether the node has not been stopped.
func (m *crowdMember) work(node raft.Node, rd raft.Ready, async bool) bool {
	if !raft.IsEmptySnap(rd.Snapshot) {
		assert.NoError(m.t, m.storage.ApplySnapshot(rd.Snapshot))
		m.restore(rd.Snapshot)
	}
	assert.NoError(m.t, m.storage.Append(rd.Entries))
	if !raft.IsEmptyHardState(rd.HardState) {
		assert.NoError(m.t, m.storage.SetHardState(rd.HardState))
	}
	applied := async || m.apply(node, rd.CommittedEntries)
	for _, msg := range rd.Messages {
		if msg.GetTo() == raft.LocalApplyThread {
			applied = m.apply(node, msg.GetEntries())
		}
		if !applied {
			return false
		}
		if !raft.IsLocalMsgTarget(msg.GetTo()) {
			m.send(node, msg)
			continue
		}
		for _, resp := range msg.GetResponses() {
			if resp.GetTo() == m.id {
				_ = node.Step(context.Background(), resp)
			} else {
				m.send(node, resp)
			}
		}
	}
	if !async {
		node.Advance()
	}
	return applied
}

// apply applies entries, and makes a snapshot of the state before now and then.
func (m *crowdMember) apply(node raft.Node, ents []*pb.Entry) bool {
	snap, _ := m.storage.Snapshot()
	if last, _ := m.storage.LastIndex(); m.index >= snap.GetMetadata().GetIndex()+20 && m.index <= last {
		_, err := m.storage.CreateSnapshot(m.index, m.conf, encodeAll(m.applied))
		assert.NoError(m.t, err)
		assert.NoError(m.t, m.storage.Compact(m.index-5))
	}
	for _, e := range ents {
		if e.GetType() != pb.EntryNormal {
			cc := &pb.ConfChangeV2{}
			assert.NoError(m.t, proto.Unmarshal(e.GetData(), cc))
			conf := node.ApplyConfChange(cc)
			if conf == nil {
				return false // stopped
			}
			m.conf = conf
		}
		m.mu.Lock()
		assert.Equal(m.t, m.index+1, e.GetIndex())
		if m.index = e.GetIndex(); len(e.GetData()) > 0 && e.GetType() == pb.EntryNormal {
			m.applied = append(m.applied, e.GetData())
		}
		m.mu.Unlock()
	}
	return true
}

// send takes a message to its receiver, some time.
func (m *crowdMember) send(node raft.Node, msg *pb.Message) {
	if msg.GetTo() > crowdNodes {
		return
	}
	to, lost := m.members[msg.GetTo()], m.rnd.IntN(20) == 0
	msg = proto.Clone(msg).(*pb.Message)
	go func() {
		if !lost {
			ctx, end := context.WithTimeout(context.Background(), time.Second)
			defer end()
			lost = (*to.node.Load()).Step(ctx, msg) != nil
		}
		switch {
		case msg.GetType() == pb.MsgSnap && lost:
			node.ReportSnapshot(to.id, raft.SnapshotFailure)
		case msg.GetType() == pb.MsgSnap:
			node.ReportSnapshot(to.id, raft.SnapshotFinish)
		case lost:
			node.ReportUnreachable(to.id)
		}
	}()
}

// agree waits until all nodes have applied the same, with a proposal that is made now.
func (c *crowd) agree() {
	last := []byte("the last one")
	until := time.Now().Add(2 * crowdPatience)
	for n := 1; ; n++ {
		time.Sleep(crowdTick)
		known, same := false, true
		for _, m := range c.members[1:] {
			m.mu.Lock()
			known = known || slices.ContainsFunc(m.applied, func(data []byte) bool { return string(data) == string(last) })
			m.mu.Unlock()
			same = same && slices.EqualFunc(m.history(), c.members[1].history(), slices.Equal)
		}
		switch {
		case known && same:
			return
		case time.Now().After(until):
			c.t.Fatal("the nodes do not agree")
		case !known || n%200 == 0: // a member that lacks a payload may need a snapshot of more than there is
			ctx, end := context.WithTimeout(context.Background(), time.Second)
			_ = (*c.members[1].node.Load()).Propose(ctx, last)
			end()
		}
	}
}

func (m *crowdMember) history() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.applied)
}
