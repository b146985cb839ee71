// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft/internal/coding"
	"github.com/weftraft/weft/raft/internal/extend"
	"github.com/weftraft/weft/raft/internal/leasing"
)

// leased is leases on, over coding or plainCoder. Brakes ask both, and the answer that
// holds Raft back more is right; news goes to both; the rest is for one of them.
type leased struct {
	coder
	leases *leasing.Leases
}

// Committable asks leases first: they let a leader commit any lower index, too. What
// is coded may be committable at an index and not below it, where units ride.
func (x *leased) Committable(k uint64) uint64 {
	return x.coder.Committable(x.leases.Committable(k))
}

func (x *leased) MayChange(change *extend.Change) error {
	if err := x.leases.MayChange(); err != nil {
		return err
	}
	return x.coder.MayChange(change)
}

func (x *leased) MayVote(m *pb.Message, wished bool) bool {
	return x.leases.MayVote(m) && x.coder.MayVote(m, wished)
}

func (x *leased) MayRun() bool { return x.leases.MayRun() && x.coder.MayRun() }

func (x *leased) MayHandTo(id uint64) bool { return x.leases.MayHandTo(id) && x.coder.MayHandTo(id) }

func (x *leased) LeaderIndex(m *pb.Message) uint64          { return x.leases.LeaderIndex(m) }
func (x *leased) TakeRead(m *pb.Message) bool               { return x.leases.TakeRead(m) }
func (x *leased) HoldRead(m *pb.Message, index uint64) bool { return x.leases.HoldRead(m, index) }

func (x *leased) Appended(ents []*pb.Entry) {
	x.coder.Appended(ents)
	x.leases.Appended(ents)
}

func (x *leased) Truncated(from uint64) {
	x.coder.Truncated(from)
	x.leases.Truncated(from)
}

func (x *leased) Committed(from, to uint64) {
	x.coder.Committed(from, to)
	x.leases.Committed(to)
}

func (x *leased) Applied(index uint64) {
	x.coder.Applied(index)
	x.leases.Applied()
}

func (x *leased) Restored(index uint64) {
	x.coder.Restored(index)
	x.leases.Restored(index)
}

func (x *leased) Turned(role extend.Role, term, lead uint64) {
	x.coder.Turned(role, term, lead)
	x.leases.Turned(role, term, lead)
}

func (x *leased) Switched(before tracker.ProgressMap) {
	x.coder.Switched(before)
	x.leases.Switched()
}

func (x *leased) VotersChanged() {
	x.coder.VotersChanged()
	x.leases.VotersChanged()
}

func (x *leased) Arrives(m *pb.Message) {
	x.coder.Arrives(m)
	x.leases.Arrives(m)
	if coding.IsPush(m) {
		x.leases.Noted(m.GetFrom(), m.GetLogTerm(), m.GetIndex())
	}
}

func (x *leased) Handled(m *pb.Message) {
	x.coder.Handled(m)
	x.leases.Handled(m)
}

func (x *leased) Leaves(m *pb.Message) {
	x.coder.Leaves(m)
	x.leases.Leaves(m)
}

func (x *leased) Check(m *pb.Message) error {
	if m.GetType() == MsgLeases {
		return x.leases.Check(m)
	}
	return x.coder.Check(m)
}

func (x *leased) Step(m *pb.Message) error {
	if m.GetType() == MsgLeases {
		return x.leases.Step(m)
	}
	return x.coder.Step(m)
}

func (x *leased) Tick() {
	x.coder.Tick()
	x.leases.Tick()
}

func (x *leased) Poll() {
	x.coder.Poll()
	x.leases.Poll()
}

// Asked returns the effects of both. A note is left out where units that are pushed to
// the same node, by the same effects, say as much.
func (x *leased) Asked() []extend.Effect {
	below, above := x.coder.Asked(), x.leases.Asked()
	for _, e := range above {
		if upTo, is := leasing.IsNote(e.Msg); is && saidByPush(below, e.Msg, upTo) {
			continue
		}
		below = append(below, e)
	}
	return below
}

func saidByPush(effects []extend.Effect, note *pb.Message, upTo uint64) bool {
	for _, e := range effects {
		if e.Do == extend.Vouch && coding.IsPush(e.Msg) && e.Msg.GetTo() == note.GetTo() &&
			e.Msg.GetLogTerm() == note.GetLogTerm() && e.Msg.GetIndex() >= upTo {
			return true
		}
	}
	return false
}

// coding and leases return the extensions for the host's calls about them, or nil.
func (r *raft) coding() *coding.Coder {
	below := r.coder
	if x, ok := below.(*leased); ok {
		below = x.coder
	}
	c, _ := below.(*coding.Coder)
	return c
}

func (r *raft) leases() *leasing.Leases {
	if x, ok := r.coder.(*leased); ok {
		return x.leases
	}
	return nil
}
