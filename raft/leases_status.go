// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
)

// ErrNoLeases is returned by calls about leases where Config.Leases is not set.
var ErrNoLeases = errors.New("raft: this node has no leases; set Config.Leases")

// LeaseStatus is a node's view of its leases. The host owns it.
type LeaseStatus struct {
	// On says that Config.Leases is set. If it is not, all else is zero.
	On bool
	// Status has the roster, what this node holds and has promised, and counters.
	leases.Status
	// Retired says, at a leader, that leases are switched off, and that members may
	// be restarted without them.
	Retired bool
	// Waiting is the number of reads that wait here.
	Waiting int
	// Reads counts reads.
	Reads LeaseReads
}

// LeaseReads counts the reads that a node took.
type LeaseReads struct {
	Local       uint64 // as a responder, without a message
	Leader      uint64 // as a leader, by its lease
	Waited      uint64 // reads that waited until this node had a lease
	Held        uint64 // reads that waited for what they had to see to be committed
	Cut         uint64 // of these, reads whose entry was cut from the log, or whose leader stepped down
	Redirected  uint64 // reads that went to the leader after a wait
	NoteCommits uint64 // times at which notes moved this node's commit index
	Refused     uint64 // messages about leases that say what cannot be
}

// LeaseNode is what a [Node] does besides if Config.Leases is set: the nodes that
// StartNode and RestartNode return all have these methods. They are those of
// [RawNode], and wait until the node has taken the call.
type LeaseNode interface {
	ReadIndexSpans(ctx context.Context, rctx []byte, spans ...leases.Span) error
	LeaseStatus() LeaseStatus
	SetResponders(ctx context.Context, wanted []leases.Want, tuner ...leases.TunerMode) error
	RetireLeases(ctx context.Context, yes bool) error
}

// LeaseStatus returns the node's view of its leases; the zero value if Config.Leases
// is not set.
func (rn *RawNode) LeaseStatus() LeaseStatus {
	x := rn.raft.leases()
	if x == nil {
		return LeaseStatus{}
	}
	s, waiting, c := x.Status()
	node, _ := x.Node()
	return LeaseStatus{On: true, Status: s, Retired: node.IsRetired(), Waiting: waiting, Reads: LeaseReads(c)}
}

// ReadIndexSpans is ReadIndex for a read that looks at some keys only: it does not wait
// for writes of other keys. Without spans it is ReadIndex. Where leases are off it asks
// the leader, as ReadIndex does. At most [leases.MaxSpans] spans have an effect.
func (rn *RawNode) ReadIndexSpans(rctx []byte, spans ...leases.Span) {
	rn.tell(rn.readRequest(rctx, spans))
}

// readRequest makes the request of a read. Spans travel in the context.
func (rn *RawNode) readRequest(rctx []byte, spans []leases.Span) *localRequest {
	q := request(pb.MsgReadIndex).withData(rctx)
	if len(spans) > 0 && len(spans) <= leases.MaxSpans && rn.raft.cfg.Leases != nil {
		q.msg.Context = leases.AppendSpans(nil, spans)
	}
	return q
}

// LeasePermit returns the reads that this node may answer from its own state, from now until
// the next call of a method that changes the node. former is the permit of the last call, or nil, and
// is returned while nothing has changed. The result is nil if there are no such reads, or Config.Leases
// is not set. A host that keeps the order described at [leases.Permit] answers such reads
// without a call of this RawNode, from any goroutine.
func (rn *RawNode) LeasePermit(former *leases.Permit) *leases.Permit {
	if x := rn.raft.leases(); x != nil {
		return x.Permit(former)
	}
	return nil
}

// CountPermittedReads counts reads in LeaseStatus.Reads that permits of this node have
// answered: local as a responder, leader as the leader. spans tell the tuner how often which
// keys were read; without a tuner they have no effect.
func (rn *RawNode) CountPermittedReads(local, leader uint64, spans []leases.Usage) {
	if x := rn.raft.leases(); x != nil {
		x.CountPermitted(local, leader, spans)
	}
}

// SetResponders says, at a leader, which nodes are to answer reads of which keys from
// now on, for spans that ascend and are disjoint. Later leaders go by it, too. Spans
// that the tuner chose stay unless they overlap.
//
// With a mode, at most one, the tuner is switched in the whole group: [leases.TunerOn],
// TunerWatch, TunerOff, or TunerConfigured, which is back to Leases.Tuner. Without, the
// tuner stays as it is. LeaseStatus.Tuner has the mode, and at the leader what the
// tuner chose and why. Errors: [leases.ErrNotLeader], ErrMalformed of that package, and
// [ErrNoLeases].
func (rn *RawNode) SetResponders(wanted []leases.Want, tuner ...leases.TunerMode) error {
	return rn.leaseCall(func(n *leases.Node, now leases.Instant) error { return n.SetWanted(now, wanted, tuner...) })
}

// RetireLeases switches leases off, or on again, at a leader, for all members. When
// LeaseStatus.Retired is true at the leader, members may be restarted without leases.
// Errors: [leases.ErrNotLeader] and [ErrNoLeases].
func (rn *RawNode) RetireLeases(yes bool) error {
	return rn.leaseCall(func(n *leases.Node, now leases.Instant) error { return n.Retire(now, yes) })
}

func (rn *RawNode) leaseCall(do func(*leases.Node, leases.Instant) error) error {
	x := rn.raft.leases()
	if x == nil {
		return ErrNoLeases
	}
	err := do(x.Node())
	rn.Poll()
	return err
}

// ReadIndexSpans implements LeaseNode.
func (n *node) ReadIndexSpans(ctx context.Context, rctx []byte, spans ...leases.Span) error {
	return n.enter(ctx, &n.rn.readRequest(rctx, spans).msg)
}

// LeaseStatus implements LeaseNode.
func (n *node) LeaseStatus() (s LeaseStatus) {
	_ = n.call(context.Background(), func(rn *RawNode) { s = rn.LeaseStatus() })
	return s
}

// SetResponders implements LeaseNode.
func (n *node) SetResponders(ctx context.Context, wanted []leases.Want, tuner ...leases.TunerMode) (err error) {
	if e := n.call(ctx, func(rn *RawNode) { err = rn.SetResponders(wanted, tuner...) }); e != nil {
		return e
	}
	return err
}

// RetireLeases implements LeaseNode.
func (n *node) RetireLeases(ctx context.Context, yes bool) (err error) {
	if e := n.call(ctx, func(rn *RawNode) { err = rn.RetireLeases(yes) }); e != nil {
		return e
	}
	return err
}
