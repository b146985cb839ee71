// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
)

// ErrStopped is returned by the methods of a stopped [Node].
var ErrStopped = errors.New("raft: stopped")

// Node is a [RawNode] in a goroutine of its own. Its methods may be called from several
// goroutines. Methods with a context give up when the context ends, and what they asked
// for may happen all the same. No method blocks once the node is stopped: the error is
// [ErrStopped].
type Node interface {
	// Tick counts one tick. Tick does not block: a node more than 128 ticks behind
	// misses some.
	Tick()
	// Campaign makes this node try to become leader.
	Campaign(ctx context.Context) error
	// Propose proposes data for the log and waits until a leader is known and this node
	// has taken the proposal. The error is [ErrProposalDropped] if this node knows that
	// no leader will append the data. Without an error the proposal may still get lost:
	// a host proposes again unless the data is committed.
	Propose(ctx context.Context, data []byte) error
	// ProposeConfChange proposes a configuration change, of the first version or of the
	// second, which all members must understand. ProposeConfChange waits until a leader
	// is known, not for the outcome. If the change does not fit the configuration, the
	// leader appends an empty entry in its place.
	ProposeConfChange(ctx context.Context, cc pb.ConfChangeI) error

	// Step lets a message of another node, or of a local storage thread, arrive.
	// Messages reserved to a node's own host are dropped.
	Step(ctx context.Context, msg *pb.Message) error

	// Ready returns the channel of the host's work. After the work for a Ready the host
	// calls Advance, unless storage writes are asynchronous. Committed entries of a
	// Ready are applied after the committed entries of the Ready before.
	Ready() <-chan Ready

	// Advance says that the work for the last Ready is done. A host may call Advance
	// while still applying entries, so that the next Ready comes sooner, but must apply
	// all entries in order. With async storage writes a host must not call Advance.
	Advance()
	// ApplyConfChange puts a committed configuration change into force and returns the
	// configuration, for the host to keep in its snapshots. A host calls it for every
	// change in CommittedEntries, except changes the host rejects. After Stop the
	// result is nil.
	ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState

	// TransferLeadership asks lead to hand leadership to transferee.
	TransferLeadership(ctx context.Context, lead, transferee uint64)

	// ForgetLeader makes a follower forget its leader and stay in its term
	// without campaigning.
	//
	// With PreVote and CheckQuorum, followers refuse to elect another leader within an
	// election timeout of hearing from the present leader. A host sure of the leader's
	// failure (the machine is gone, for example) tells a quorum of nodes to forget the
	// leader, and one of these nodes to campaign. A mistaken host disturbs no node,
	// because the next heartbeat brings the leader back.
	//
	// With [ReadOnlyLeaseBased] ForgetLeader does nothing, because the leader counts on
	// not being forgotten.
	ForgetLeader(ctx context.Context) error

	// ReadIndex asks for an index to wait for before a read is answered, so
	// that the read is linearizable. The answer is a [ReadState] with rctx in a
	// later Ready. A request may get lost; the host asks again.
	ReadIndex(ctx context.Context, rctx []byte) error

	// Status returns a copy of the node's status; empty after Stop.
	Status() Status
	// ReportUnreachable says that a message to the member could not be sent.
	ReportUnreachable(id uint64)
	// ReportSnapshot says how sending a snapshot to the member went. A host must report
	// a failure in sending and, if known to the host, in applying, because the leader
	// sends the member nothing else until a report.
	ReportSnapshot(id uint64, status SnapshotStatus)
	// Stop ends the node, and returns once the node's goroutine has ended.
	Stop()
}

// StartNode begins a group with the given first members (see [RawNode.Bootstrap]) and
// starts this node. StartNode panics without peers, or if c is not valid. If the
// storage is not empty, the node starts from that.
func StartNode(c *Config, peers []Peer) Node {
	if len(peers) == 0 {
		panic("raft: StartNode: no peers given; use RestartNode for a node whose members are in its storage")
	}
	n := newNode(c)
	if err := n.rn.Bootstrap(peers); err != nil {
		n.rn.raft.cfg.Logger.Warningf("raft: node %x starts without bootstrap: %v", c.ID, err)
	}
	go n.run()
	return n
}

// RestartNode starts a node from c.Storage. RestartNode panics if c is not valid.
func RestartNode(c *Config) Node {
	n := newNode(c)
	go n.run()
	return n
}

// tickBacklog is how many ticks may wait for a busy node.
const tickBacklog = 128

// node implements Node. Every method hands its wish to the goroutine in run
// through a channel; only that goroutine touches rn.
type node struct {
	rn *RawNode

	// proposals is served only while a leader is known; inbox always.
	proposals chan proposal
	inbox     chan *pb.Message
	changes   chan confChange
	calls     chan func(*RawNode) // see call
	ticks     chan struct{}
	readies   chan Ready
	advances  chan struct{}

	stop chan struct{} // taken by run, which then closes done
	done chan struct{}
}

// proposal is a MsgProp and the channel for its result, or nil.
type proposal struct {
	m      *pb.Message
	result chan error
}

// confChange is a change to apply and where to return the configuration.
type confChange struct {
	cc     *pb.ConfChangeV2
	result chan *pb.ConfState
}

func newNode(c *Config) *node {
	rn, err := NewRawNode(c)
	if err != nil {
		panic(err)
	}
	return &node{
		rn:        rn,
		proposals: make(chan proposal),
		inbox:     make(chan *pb.Message),
		changes:   make(chan confChange),
		calls:     make(chan func(*RawNode)),
		ticks:     make(chan struct{}, tickBacklog),
		readies:   make(chan Ready),
		advances:  make(chan struct{}),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
}

// nodeLoop is run's state from one turn to the next. A nil channel is not served.
type nodeLoop struct {
	*node
	lead      uint64
	proposals chan proposal // nil while no leader is known, or this node is removed
	readies   chan Ready    // nil while there is nothing to offer
	advances  chan struct{} // nil while no Ready is being worked on
	rd        Ready         // offered, or being worked on
}

func (n *node) run() {
	defer close(n.done)
	l := nodeLoop{node: n}
	for l.turn() {
	}
}

// turn serves one event, and returns false after Stop.
func (l *nodeLoop) turn() bool {
	l.offer()
	l.followLeader()
	rn := l.rn
	select {
	case p := <-l.proposals:
		p.m.From = new(rn.raft.id)
		err := rn.raft.Step(p.m)
		if p.result != nil {
			p.result <- err
		}
	case m := <-l.inbox:
		if rn.expects(m) {
			_ = rn.raft.Step(m) // an error is like a message lost: whoever cares asks again
		}
	case c := <-l.changes:
		l.applyConfChange(c)
	case <-l.ticks:
		rn.Tick()
	case l.readies <- l.rd:
		l.accepted()
	case <-l.advances:
		rn.Advance(l.rd)
		l.rd, l.advances = Ready{}, nil
	case do := <-l.calls:
		do(rn)
	case <-l.stop:
		return false
	}
	return true
}

// offer prepares a Ready if there is work and the host is not busy with the last one.
// Until the host takes the Ready, each turn makes a new one with more in it.
func (l *nodeLoop) offer() {
	if l.advances == nil && l.rn.HasReady() {
		l.rd = l.rn.offer()
		l.readies = l.node.readies
	}
}

// accepted notes that the host took the Ready.
func (l *nodeLoop) accepted() {
	l.rn.accept(l.rd)
	l.readies = nil
	if l.rn.raft.cfg.AsyncStorageWrites {
		l.rd = Ready{}
	} else {
		l.advances = l.node.advances
	}
}

// followLeader opens and closes the door for proposals as leaders come and go.
func (l *nodeLoop) followLeader() {
	r := l.rn.raft
	if l.lead == r.lead {
		return
	}
	r.cfg.Logger.Infof("raft: node %x: the leader was %x and is %x at term %d", r.id, l.lead, r.lead, r.term)
	l.lead, l.proposals = r.lead, nil
	if r.lead != None {
		l.proposals = l.node.proposals
	}
}

// applyConfChange also closes the door for proposals when the change removes this node.
// A node outside of the members before the change may just not have caught up, and
// stays open.
func (l *nodeLoop) applyConfChange(c confChange) {
	r := l.rn.raft
	before := r.members.Progress(r.id) != nil
	cs := l.rn.ApplyConfChange(c.cc)
	after := r.members.Progress(r.id) != nil
	if before && !after {
		l.proposals = nil
	}
	c.result <- cs
}

func (n *node) Stop() {
	select {
	case n.stop <- struct{}{}:
		<-n.done
	case <-n.done:
	}
}

func (n *node) Tick() {
	select {
	case n.ticks <- struct{}{}:
	case <-n.done:
	default:
		n.rn.raft.cfg.Logger.Warningf("raft: node %x misses a tick: %d are waiting", n.rn.raft.id, tickBacklog)
	}
}

// enter puts m into the inbox.
func (n *node) enter(ctx context.Context, m *pb.Message) error {
	select {
	case n.inbox <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return ErrStopped
	}
}

// propose waits until the proposal is taken, and for the result if the proposal has a
// channel.
func (n *node) propose(ctx context.Context, p proposal) error {
	select {
	case n.proposals <- p:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return ErrStopped
	}
	if p.result == nil {
		return nil
	}
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return ErrStopped
	}
}

func (n *node) Campaign(ctx context.Context) error {
	return n.enter(ctx, &request(pb.MsgHup).msg)
}

func (n *node) Propose(ctx context.Context, data []byte) error {
	return n.propose(ctx, proposal{m: &request(pb.MsgProp).withData(data).msg, result: make(chan error, 1)})
}

func (n *node) ProposeConfChange(ctx context.Context, cc pb.ConfChangeI) error {
	m, err := confChangeRequest(cc)
	if err != nil {
		return err
	}
	return n.propose(ctx, proposal{m: m})
}

func (n *node) Step(ctx context.Context, m *pb.Message) error {
	switch {
	case m == nil:
		return errors.New("cannot step with nil message")
	case IsLocalMsg(m.GetType()) && !IsLocalMsgTarget(m.GetFrom()):
		return nil
	case m.GetType() == pb.MsgProp:
		return n.propose(ctx, proposal{m: m})
	}
	return n.enter(ctx, m)
}

func (n *node) Ready() <-chan Ready { return n.readies }

func (n *node) Advance() {
	select {
	case n.advances <- struct{}{}:
	case <-n.done:
	}
}

func (n *node) ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState {
	c := confChange{cc: cc.AsV2(), result: make(chan *pb.ConfState, 1)}
	select {
	case n.changes <- c:
		return <-c.result
	case <-n.done:
		return nil
	}
}

// call has the node's goroutine do something, and waits until it has.
func (n *node) call(ctx context.Context, do func(*RawNode)) error {
	done := make(chan struct{})
	select {
	case n.calls <- func(rn *RawNode) { do(rn); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return ErrStopped
	}
}

func (n *node) Status() (s Status) {
	_ = n.call(context.Background(), func(rn *RawNode) { s = rn.Status() })
	return s
}

// Densify implements Densifier.
func (n *node) Densify(on bool) {
	_ = n.call(context.Background(), func(rn *RawNode) { rn.Densify(on) })
}

func (n *node) ReportUnreachable(id uint64) {
	_ = n.enter(context.Background(), &request(pb.MsgUnreachable).withFrom(id).msg)
}

func (n *node) ReportSnapshot(id uint64, status SnapshotStatus) {
	_ = n.enter(context.Background(), &request(pb.MsgSnapStatus).withFrom(id).withReject(status == SnapshotFailure).msg)
}

func (n *node) TransferLeadership(ctx context.Context, lead, transferee uint64) {
	m := &request(pb.MsgTransferLeader).withFrom(transferee).msg
	m.To = new(lead)
	_ = n.enter(ctx, m)
}

func (n *node) ForgetLeader(ctx context.Context) error {
	return n.enter(ctx, &request(pb.MsgForgetLeader).msg)
}

func (n *node) ReadIndex(ctx context.Context, rctx []byte) error {
	return n.enter(ctx, &request(pb.MsgReadIndex).withData(rctx).msg)
}
