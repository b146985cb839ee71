// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/placement"
)

// Members returns the configuration as of the last entry handed to the apply stage. The
// caller must not change it.
func (r *Replica) Members() *pb.ConfState { return r.host.conf }

// Leader returns the leader known to this node, or 0.
func (r *Replica) Leader() uint64 { return r.state.Lead }

// Unaddressed names the members without an address at the driver: calls that time out name
// these members. added reports whether a member is new in the list.
func (r *Replica) Unaddressed(members []uint64) (added bool) {
	added = slices.ContainsFunc(members, func(id uint64) bool { return !slices.Contains(r.unaddressed, id) })
	r.unaddressed = members
	return added
}

// Fail puts the replica out of service.
func (r *Replica) Fail(err error) { r.fail(err) }

// Bytes returns the size of the entries that are written.
func (a *Append) Bytes() int { return a.bytes }

// Brief is Status without what has to be gathered: members' progress, settings and first members, coding, leases and weights.
func (r *Replica) Brief() Status {
	now := r.core.State()
	return Status{
		ID: r.cfg.ID, Group: r.cfg.Group, Term: now.Term, Commit: now.Commit, Applied: now.Applied, Lead: now.Lead, Role: now.Role,
		LastIndex: r.last, Emitted: r.emitted.index, Members: r.host.conf,
		Waiting: r.calls.live, Queued: r.outbox.queued, Stalled: r.stall.reason, Resolve: r.resolving.stats, Send: r.sends.stats, Counters: r.count,
		Unaddressed: r.unaddressed,
	}
}

// Status returns a copy of the replica's view of itself and its group.
func (r *Replica) Status() Status {
	s := r.Brief()
	s.FirstMembers, s.Settings, s.Coding, s.Leases = r.founding.nodes(), r.settings.misfits(), r.codingState(), r.leaseState()
	r.countNames(&s.Counters)
	s.Weight, _ = r.placing.weightOf(r.cfg.ID)
	if !r.leads() {
		return s
	}
	_, progress := r.core.Members()
	s.Progress = make(map[uint64]MemberProgress, len(progress))
	for id, p := range progress {
		s.Progress[id] = MemberProgress{
			Match: p.Match, Next: p.Next, State: p.State.String(),
			RecentActive: r.reachable(id), Learner: p.IsLearner, LogLost: r.losses.lost[id],
			Weight: placement.DefaultWeight,
		}
	}
	r.placing.compare(s.Progress)
	return s
}
