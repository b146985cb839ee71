// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	upstream "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/theirs"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// rawNode is what a simulated host calls of *raft.RawNode.
type rawNode interface {
	replica.Shared
	Bootstrap(peers []raft.Peer) error
	ReportSnapshot(id uint64, status raft.SnapshotStatus)
	Ready() raft.Ready
	Advance(raft.Ready)
	BasicStatus() raft.BasicStatus
	Status() raft.Status
	WithProgress(visitor func(id uint64, typ raft.ProgressType, pr tracker.Progress))

	Poll()
	NextDeadline() (time.Duration, bool)
	Densify(on bool)
	CodingStatus() raft.CodingStatus
	ReadIndexSpans(rctx []byte, spans ...leases.Span)
	LeaseStatus() raft.LeaseStatus
	SetResponders(wanted []leases.Want, tuner ...leases.TunerMode) error
	RetireLeases(yes bool) error
}

var _ rawNode = (*raft.RawNode)(nil)

// upstreamNode is a RawNode of upstream's library, which neither codes nor leases.
// Upstream draws election timeouts from crypto/rand.
type upstreamNode struct {
	rn    *upstream.RawNode
	draws world.Draws
	// id is the member's; removed is set once its own removal is in force.
	id      uint64
	removed bool
}

func newUpstreamNode(c *raft.Config, draws world.Draws) (*upstreamNode, error) {
	u := &upstreamNode{draws: draws, id: c.ID}
	var err error
	u.do(func() { u.rn, err = upstream.NewRawNode(theirs.Config(c)) })
	return u, err
}

// do makes a call with the node's randomness.
func (u *upstreamNode) do(call func()) { world.WithEntropy(u.draws, call) }

func (u *upstreamNode) try(call func() error) (err error) {
	u.do(func() { err = call() })
	return err
}

func (u *upstreamNode) Tick()         { u.do(u.rn.Tick) }
func (u *upstreamNode) TickQuiesced() { u.do(u.rn.TickQuiesced) }

// Step gives the node a message. Upstream's library panics if it wins an election after its host
// has put its own removal into force; hosts end such a member, and here it takes no votes.
func (u *upstreamNode) Step(m *pb.Message) error {
	if m.GetType() == pb.MsgVoteResp && u.removed {
		return nil
	}
	return u.try(func() error { return u.rn.Step(m) })
}
func (u *upstreamNode) Campaign() error     { return u.try(u.rn.Campaign) }
func (u *upstreamNode) ForgetLeader() error { return u.try(u.rn.ForgetLeader) }
func (u *upstreamNode) Propose(data []byte) error {
	return u.try(func() error { return u.rn.Propose(data) })
}
func (u *upstreamNode) ProposeConfChange(cc pb.ConfChangeI) error {
	return u.try(func() error { return u.rn.ProposeConfChange(cc) })
}
func (u *upstreamNode) ApplyConfChange(cc pb.ConfChangeI) (cs *pb.ConfState) {
	u.do(func() { cs = u.rn.ApplyConfChange(cc) })
	u.removed = !members.Has(cs, u.id)
	return cs
}
func (u *upstreamNode) ReadIndex(rctx []byte)       { u.do(func() { u.rn.ReadIndex(rctx) }) }
func (u *upstreamNode) TransferLeader(to uint64)    { u.do(func() { u.rn.TransferLeader(to) }) }
func (u *upstreamNode) ReportUnreachable(id uint64) { u.do(func() { u.rn.ReportUnreachable(id) }) }
func (u *upstreamNode) ReportSnapshot(id uint64, s raft.SnapshotStatus) {
	u.do(func() { u.rn.ReportSnapshot(id, theirs.SnapshotStatus(s == raft.SnapshotFinish)) })
}
func (u *upstreamNode) HasReady() bool { return u.rn.HasReady() }
func (u *upstreamNode) Advance(raft.Ready) {
	u.do(func() { u.rn.Advance(upstream.Ready{}) })
}

// Bootstrap is not called: the founding members of a run with upstream's library
// have a common snapshot.
func (u *upstreamNode) Bootstrap([]raft.Peer) error { panic("rafttest: bootstrap of an upstream node") }

func (u *upstreamNode) Ready() (out raft.Ready) {
	u.do(func() { out = theirs.Ready(u.rn.Ready()) })
	return out
}

func (u *upstreamNode) BasicStatus() raft.BasicStatus { return theirs.BasicStatus(u.rn.BasicStatus()) }
func (u *upstreamNode) Status() raft.Status           { return theirs.Status(u.rn.Status()) }

func (u *upstreamNode) WithProgress(visitor func(id uint64, typ raft.ProgressType, pr tracker.Progress)) {
	u.rn.WithProgress(func(id uint64, typ upstream.ProgressType, pr tracker.Progress) {
		visitor(id, raft.ProgressType(typ), pr)
	})
}

func (u *upstreamNode) Poll()                                        {}
func (u *upstreamNode) NextDeadline() (time.Duration, bool)          { return 0, false }
func (u *upstreamNode) Densify(bool)                                 {}
func (u *upstreamNode) CodingStatus() raft.CodingStatus              { return raft.CodingStatus{} }
func (u *upstreamNode) ReadIndexSpans(rctx []byte, _ ...leases.Span) { u.ReadIndex(rctx) }
func (u *upstreamNode) LeaseStatus() raft.LeaseStatus                { return raft.LeaseStatus{} }
func (u *upstreamNode) SetResponders([]leases.Want, ...leases.TunerMode) error {
	return raft.ErrNoLeases
}
func (u *upstreamNode) RetireLeases(bool) error { return raft.ErrNoLeases }
