// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

var (
	// ErrStepLocalMsg is returned by Step for a message that only a node's own
	// host sends.
	ErrStepLocalMsg = errors.New("raft: cannot step raft local message")

	// ErrStepPeerNotFound is returned by Step for an answer of a node that is
	// no member, as far as this node knows.
	ErrStepPeerNotFound = errors.New("raft: cannot step as peer not found")
)

// RawNode is the state machine of one node. Its methods return at once and must
// not be called from several goroutines at a time; [Node] can be.
type RawNode struct {
	raft *raft
	// toldSoft and toldHard are the states that the host knows.
	toldSoft SoftState
	toldHard hardState
	// onAdvance is what this node tells itself when the host calls Advance.
	onAdvance []*pb.Message
}

// NewRawNode makes a node from what config.Storage has. A mistake in the
// configuration, or in what the storage returns, is an error that names it.
//
// The members are those of the storage's ConfState. A new group is best started
// from a storage that is prepared with one (an index above 1 and the same at
// all members); or see Bootstrap.
func NewRawNode(config *Config) (*RawNode, error) {
	r, err := newRaft(config)
	if err != nil {
		return nil, err
	}
	return &RawNode{raft: r, toldSoft: r.softState(), toldHard: r.hardState()}, nil
}

// Tick lets one tick of the host's clock pass.
func (rn *RawNode) Tick() {
	if rn.raft.log.err != nil {
		return
	}
	r := rn.raft
	r.role.tick()
	r.coder.Tick()
	r.settle()
	if l := r.leading(); l != nil && r.electorate.foresees() {
		l.retryHeld()
		r.settle()
	}
}

// TickQuiesced lets a tick pass that only counts: no heartbeat is sent and no
// campaign begins. Hosts with very many groups use it for those that are idle
// and know that their peers are, too.
//
// Deprecated: it is here because hosts of upstream's library call it.
func (rn *RawNode) TickQuiesced() { rn.raft.quietTicks++ }

// Campaign makes this node try to become leader.
func (rn *RawNode) Campaign() error {
	return rn.raft.Step(&request(pb.MsgHup).msg)
}

// Propose proposes data for the log. It returns [ErrProposalDropped] where this
// node knows that nobody will append it; without an error it may still be lost.
// data may be reused after the call at a leader; a follower keeps it until the
// message that forwards it is sent.
func (rn *RawNode) Propose(data []byte) error {
	return rn.raft.Step(&request(pb.MsgProp).withFrom(rn.raft.id).withData(data).msg)
}

// ProposeConfChange proposes a configuration change; like any proposal it may
// be lost. If it does not fit the configuration, or another is on its way, an
// empty entry is appended in its place.
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

// ApplyConfChange puts a committed configuration change into force, and returns
// the configuration, for the host to keep in its snapshots. It is called for
// every change in CommittedEntries, unless the host rejects it, as all members
// must then do.
func (rn *RawNode) ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState {
	cs := rn.raft.applyConfChange(cc.AsV2())
	rn.raft.settle()
	return cs
}

// Step lets a message of another node, or of a local storage thread, arrive. m
// must not change afterwards. Errors: [ErrStepLocalMsg], [ErrStepPeerNotFound],
// [ErrProposalDropped] and [ErrMalformedMessage]; the message had no effect
// then, other than that a later term was learnt. And [ErrStorage].
func (rn *RawNode) Step(m *pb.Message) error {
	switch {
	case IsLocalMsg(m.GetType()) && !IsLocalMsgTarget(m.GetFrom()):
		return ErrStepLocalMsg
	case !rn.expects(m):
		return ErrStepPeerNotFound
	}
	return rn.raft.Step(m)
}

// expects reports whether m may be listened to: answers count only if they come
// from members or from the host.
func (rn *RawNode) expects(m *pb.Message) bool {
	from := m.GetFrom()
	return !IsResponseMsg(m.GetType()) || IsLocalMsgTarget(from) || rn.raft.members.Progress[from] != nil || rn.raft.electorate.expects(from)
}

// ReportUnreachable says that a message to the member could not be sent.
func (rn *RawNode) ReportUnreachable(id uint64) {
	rn.tell(request(pb.MsgUnreachable).withFrom(id))
}

// ReportSnapshot says how sending a snapshot to the member went. It must be
// said when it failed, or the member gets nothing more.
func (rn *RawNode) ReportSnapshot(id uint64, status SnapshotStatus) {
	rn.tell(request(pb.MsgSnapStatus).withFrom(id).withReject(status == SnapshotFailure))
}

// TransferLeader asks that leadership be handed to the transferee: a follower
// passes the wish on.
func (rn *RawNode) TransferLeader(transferee uint64) {
	rn.tell(request(pb.MsgTransferLeader).withFrom(transferee))
}

// ForgetLeader makes a follower forget its leader, without campaigning: it may
// then vote for another at once (see [Node]). A leader ignores it, and so does
// a node with [ReadOnlyLeaseBased].
func (rn *RawNode) ForgetLeader() error {
	return rn.raft.Step(&request(pb.MsgForgetLeader).msg)
}

// ReadIndex asks for an index to wait for before a read is answered, so that
// the read is linearizable. The answer is a [ReadState] with rctx in a later
// Ready; or there is none, if the request gets lost.
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

// WithProgress calls visitor for each member in order of id with what is known
// of it, without allocating. Inflights is nil.
func (rn *RawNode) WithProgress(visitor func(id uint64, typ ProgressType, pr tracker.Progress)) {
	rn.raft.members.Visit(func(id uint64, member *tracker.Progress) {
		pr, typ := *member, ProgressTypePeer
		if pr.IsLearner {
			typ = ProgressTypeLearner
		}
		pr.Inflights = nil
		pr.Match = rn.raft.coder.ShownMatch(id, pr.Match)
		visitor(id, typ, pr)
	})
}
