// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

var (
	// ErrStepLocalMsg is returned by Step for a message reserved to a node's own host.
	ErrStepLocalMsg = errors.New("raft: cannot step raft local message")

	// ErrStepPeerNotFound is returned by Step for an answer of a node unknown as a
	// member here.
	ErrStepPeerNotFound = errors.New("raft: cannot step as peer not found")
)

// RawNode is the state machine of one node. Its methods return at once and must
// not be called from several goroutines at a time; [Node] can be.
type RawNode struct {
	raft *raft
	// toldSoft and toldHard are the states known to the host.
	toldSoft SoftState
	toldHard hardState
	// onAdvance is this node's messages to itself for the next Advance.
	onAdvance []*pb.Message
	// committed is the log's own slice behind CommittedEntries of the last offer. The host may
	// have changed its copy by the time the host reports.
	committed []*pb.Entry
	// reports is memory for the messages of onAdvance about the host's work, which the host
	// never sees: first the report of writing, then of applying. Nil until the first Ready.
	reports *[2]envelope
}

// NewRawNode makes a node from config.Storage. The error names each mistake in the
// configuration or in the storage's answers.
//
// The storage's ConfState has the members. A new group is best started from a storage
// prepared with a ConfState (an index above 1 and the same at all members); or see
// Bootstrap.
func NewRawNode(config *Config) (*RawNode, error) {
	r, err := newRaft(config)
	if err != nil {
		return nil, err
	}
	return &RawNode{raft: r, toldSoft: r.softState(), toldHard: r.hardState()}, nil
}

// Tick counts one tick of the host's clock.
func (rn *RawNode) Tick() {
	if rn.raft.log.err != nil {
		return
	}
	r := rn.raft
	r.log.tail.watch()
	r.cfg.Placement.tick()
	r.role.tick()
	r.extension.Tick()
	r.settle()
	if l := r.leading(); l != nil && r.members.Tracks() {
		l.retryHeld()
		r.settle()
	}
}

// TickQuiesced counts a tick and does nothing else: no heartbeat is sent and no
// campaign begins. Hosts with very many groups use it for idle groups whose peers are
// known to be idle, too. With leases it looks whether the clock is fit, as Tick does.
//
// Deprecated: kept for hosts of upstream's library.
func (rn *RawNode) TickQuiesced() {
	rn.raft.countTick()
	if x := rn.raft.leases(); x != nil {
		x.LookAtClock() // leases that are held end by the clock
	}
}

// Campaign makes this node try to become leader.
func (rn *RawNode) Campaign() error {
	return rn.raft.Step(&request(pb.MsgHup).msg)
}

// Propose proposes data for the log. The error is [ErrProposalDropped] if this node
// knows that no leader will append data; without an error the proposal may still get
// lost. At a leader data may be reused after the call; a follower keeps data until the
// forwarding message is sent.
func (rn *RawNode) Propose(data []byte) error {
	return rn.raft.Step(&request(pb.MsgProp).withFrom(rn.raft.id).withData(data).msg)
}

// ProposeConfChange proposes a configuration change; like any proposal the change may
// get lost. If the change does not fit the configuration, or another is on its way, the
// leader appends an empty entry in its place.
func (rn *RawNode) ProposeConfChange(cc pb.ConfChangeI) error {
	m, err := confChangeRequest(cc)
	if err != nil {
		return err
	}
	return rn.raft.Step(m)
}

// confChangeRequest makes the proposal of a configuration change.
func confChangeRequest(cc pb.ConfChangeI) (*pb.Message, error) {
	typ, data, err := pb.MarshalConfChange(cc)
	if err != nil {
		return nil, err
	}
	q := request(pb.MsgProp).withData(data)
	q.entry.Type = typ.Enum()
	return &q.msg, nil
}

// ApplyConfChange puts a committed configuration change into force, and returns the
// configuration, for the host to keep in its snapshots. A host calls it for every
// change in CommittedEntries, unless the hosts of all members reject the change.
func (rn *RawNode) ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState {
	cs := rn.raft.applyConfChange(cc.AsV2())
	rn.raft.settle()
	return cs
}

// Step lets a message of another node, or of a local storage thread, arrive. m must not
// change afterwards. Errors: [ErrStepLocalMsg], [ErrStepPeerNotFound],
// [ErrProposalDropped] and [ErrMalformedMessage]; the message then had no effect,
// except that this node may have learnt of a later term. And [ErrStorage].
func (rn *RawNode) Step(m *pb.Message) error {
	switch {
	case IsLocalMsg(m.GetType()) && !IsLocalMsgTarget(m.GetFrom()):
		return ErrStepLocalMsg
	case !rn.expects(m):
		return ErrStepPeerNotFound
	}
	return rn.raft.Step(m)
}

// Err returns nil, or why the node is out of service: see [ErrStorage].
func (rn *RawNode) Err() error { return rn.raft.log.err }

// expects reports whether m is acceptable: answers count only from members or from the
// host.
func (rn *RawNode) expects(m *pb.Message) bool {
	from := m.GetFrom()
	return !IsResponseMsg(m.GetType()) || IsLocalMsgTarget(from) || rn.raft.members.Progress(from) != nil || rn.raft.members.Expects(from)
}

// ReportUnreachable says that a message to the member could not be sent.
func (rn *RawNode) ReportUnreachable(id uint64) {
	rn.tell(request(pb.MsgUnreachable).withFrom(id))
}

// ResumeAppends sends a member what [Config.Pace] has held back and permits now.
func (rn *RawNode) ResumeAppends(id uint64) {
	l := rn.raft.leading()
	if l == nil || rn.raft.log.err != nil {
		return
	}
	if pr := l.members.Progress(id); pr != nil {
		for l.sendAppend(id, pr, false) {
		}
	}
	rn.raft.settle()
}

// ReportSnapshot says how sending a snapshot to the member went. A host must report a
// failure, or the leader sends the member nothing more.
func (rn *RawNode) ReportSnapshot(id uint64, status SnapshotStatus) {
	rn.tell(request(pb.MsgSnapStatus).withFrom(id).withReject(status == SnapshotFailure))
}

// TransferLeader asks that leadership be handed to the transferee: a follower
// passes the wish on.
func (rn *RawNode) TransferLeader(transferee uint64) {
	rn.tell(request(pb.MsgTransferLeader).withFrom(transferee))
}

// ForgetLeader makes a follower forget its leader, without campaigning, so that the
// follower may vote for another at once (see [Node]). A leader ignores the call, and so
// does a node with [ReadOnlyLeaseBased].
func (rn *RawNode) ForgetLeader() error {
	return rn.raft.Step(&request(pb.MsgForgetLeader).msg)
}

// ReadIndex asks for an index to wait for before a read is answered, so that the read
// is linearizable. The answer is a [ReadState] with rctx in a later Ready, unless the
// request gets lost.
func (rn *RawNode) ReadIndex(rctx []byte) {
	rn.tell(request(pb.MsgReadIndex).withData(rctx))
}

// tell steps a request whose outcome shows elsewhere.
func (rn *RawNode) tell(q *localRequest) { _ = rn.raft.Step(&q.msg) }

// ProgressType tells voters and learners apart.
type ProgressType byte

const (
	// ProgressTypePeer marks the progress of a voter.
	ProgressTypePeer ProgressType = iota
	// ProgressTypeLearner marks the progress of a learner.
	ProgressTypeLearner
)

// WithProgress calls visitor for each member in order of id with its progress, without
// allocating. Inflights is nil.
func (rn *RawNode) WithProgress(visitor func(id uint64, typ ProgressType, pr tracker.Progress)) {
	rn.raft.members.Visit(func(id uint64, member *tracker.Progress) {
		pr, typ := *member, ProgressTypePeer
		if pr.IsLearner {
			typ = ProgressTypeLearner
		}
		pr.Inflights = nil
		pr.Match = rn.raft.extension.ShownMatch(id, pr.Match)
		visitor(id, typ, pr)
	})
}
