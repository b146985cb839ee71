// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft/internal/coding"
	"github.com/weftraft/weft/raft/internal/extend"
	"github.com/weftraft/weft/raft/internal/leasing"
)

// both is leases on, over coding or alone. Brakes ask both, and the answer that
// holds Raft back more is right; news goes to both; the rest is for one of them.
type both struct {
	extension
	leases *leasing.Leases
}

// Committable asks leases first: they let a leader commit any lower index, too. What
// is coded may be committable at an index and not below it, where units ride.
func (x *both) Committable(k uint64) uint64 {
	return x.extension.Committable(x.leases.Committable(k))
}

func (x *both) MayChange(change *extend.Change) error {
	if err := x.leases.MayChange(); err != nil {
		return err
	}
	return x.extension.MayChange(change)
}

func (x *both) MayVote(m *pb.Message, wished bool) bool {
	return x.leases.MayVote(m) && x.extension.MayVote(m, wished)
}

func (x *both) MayRun() bool { return x.leases.MayRun() && x.extension.MayRun() }

func (x *both) MayHandTo(id uint64) bool { return x.leases.MayHandTo(id) && x.extension.MayHandTo(id) }

func (x *both) LeaderIndex(m *pb.Message) uint64          { return x.leases.LeaderIndex(m) }
func (x *both) TakeRead(m *pb.Message) bool               { return x.leases.TakeRead(m) }
func (x *both) HoldRead(m *pb.Message, index uint64) bool { return x.leases.HoldRead(m, index) }

func (x *both) Appended(ents []*pb.Entry) {
	x.extension.Appended(ents)
	x.leases.Appended(ents)
}

func (x *both) Truncated(from uint64) {
	x.extension.Truncated(from)
	x.leases.Truncated(from)
}

func (x *both) Committed(from, to uint64) {
	x.extension.Committed(from, to)
	x.leases.Committed(to)
}

func (x *both) Applied(index uint64) {
	x.extension.Applied(index)
	x.leases.Applied()
}

func (x *both) Restored(index uint64) {
	x.extension.Restored(index)
	x.leases.Restored(index)
}

func (x *both) Turned(role extend.Role, term, lead uint64) {
	x.extension.Turned(role, term, lead)
	x.leases.Turned(role, term, lead)
}

func (x *both) Switched(before tracker.ProgressMap) {
	x.extension.Switched(before)
	x.leases.Switched()
}

func (x *both) VotersChanged() {
	x.extension.VotersChanged()
	x.leases.VotersChanged()
}

func (x *both) Arrives(m *pb.Message) {
	x.extension.Arrives(m)
	x.leases.Arrives(m)
	if coding.IsPush(m) {
		x.leases.Noted(m.GetFrom(), m.GetLogTerm(), m.GetIndex())
	}
}

func (x *both) Handled(m *pb.Message) {
	x.extension.Handled(m)
	x.leases.Handled(m)
}

func (x *both) Leaves(m *pb.Message) {
	x.extension.Leaves(m)
	x.leases.Leaves(m)
}

func (x *both) Check(m *pb.Message) error {
	if m.GetType() == MsgLeases {
		return x.leases.Check(m)
	}
	return x.extension.Check(m)
}

func (x *both) Step(m *pb.Message) error {
	if m.GetType() == MsgLeases {
		return x.leases.Step(m)
	}
	return x.extension.Step(m)
}

func (x *both) Tick() {
	x.extension.Tick()
	x.leases.Tick()
}

func (x *both) Poll() {
	x.extension.Poll()
	x.leases.Poll()
}

// Asked returns the effects of both. A message about what this node holds is left out where
// one to the same node, by the same effects, says as much beside all else.
func (x *both) Asked() []extend.Effect {
	below, above := x.extension.Asked(), x.leases.Asked()
	for _, e := range above {
		if e.Holds == 0 || !slices.ContainsFunc(below, e.IsSaidBy) {
			below = append(below, e)
		}
	}
	return below
}

// coding and leases return the extensions for the host's calls about them, or nil.
func (r *raft) coding() *coding.Coder {
	below := r.extension
	if x, ok := below.(*both); ok {
		below = x.extension
	}
	c, _ := below.(*coding.Coder)
	return c
}

func (r *raft) leases() *leasing.Leases {
	if x, ok := r.extension.(*both); ok {
		return x.leases
	}
	return nil
}
