// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Status is a replica's view of itself and its group. The fields are the same as in
// rawnode.Status, which explains each field.
type Status struct {
	ID, Group     uint64
	Term          uint64
	Commit        uint64
	Applied       uint64
	Lead          uint64
	Role          raft.StateType
	LastIndex     uint64
	Emitted       uint64
	Members       *pb.ConfState
	FirstMembers  []uint64
	Progress      map[uint64]MemberProgress
	Waiting       int
	Queued        int
	Stalled       error
	Unaddressed   []uint64
	Settings      map[uint64]error
	Weight        int
	Resolve, Send StageStats
	Counters      Counters
	Coding        *CodingState
	Leases        *raft.LeaseStatus
}

// MemberProgress is what a leader knows of a member.
type MemberProgress struct {
	Match, Next  uint64
	State        string
	RecentActive bool // heard from within an election timeout
	LogLost      bool // its log ends before its acknowledged index: see ErrLogLost
	Learner      bool
	Weight       int  // as a leader of this group
	Worse        bool // as a leader, by its figure or its weight: see placement.Good
}

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

// NameCounts returns what the replica has done with names.
func (r *Replica) NameCounts() NameCounts { return r.naming.counts() }

// Brief is Status without what has to be gathered: members' progress, settings and first members, coding, leases and weights.
func (r *Replica) Brief() Status {
	now := r.core.State()
	return Status{
		ID: r.cfg.ID, Group: r.cfg.Group, Term: now.Term, Commit: now.Commit, Applied: now.Applied, Lead: now.Lead, Role: now.Role,
		LastIndex: r.last, Emitted: r.emitted.index, Members: r.host.conf,
		Waiting: r.live + r.home.leaving(), Queued: r.outbox.queued, Stalled: r.stalled, Resolve: r.resolving.stats, Send: r.sends.stats, Counters: r.count,
		Unaddressed: r.unaddressed,
	}
}

// Status returns a copy of the replica's view of itself and its group.
func (r *Replica) Status() Status {
	s := r.Brief()
	s.FirstMembers, s.Settings, s.Coding, s.Leases = r.founding.nodes(), r.settings.misfits(), r.coding.state(), r.leasing.state()
	n := r.naming.counts()
	s.Counters.NamedBytes, s.Counters.RelayedBytes, s.Counters.PassedBytes, s.Counters.NamesLacked = n.Saved, n.Relayed, n.PassedBytes, n.Filled+n.Gone
	s.Weight, _ = r.placing.weightOf(r.cfg.ID)
	if !r.leads() {
		return s
	}
	_, progress := r.core.Members()
	s.Progress = make(map[uint64]MemberProgress, len(progress))
	for id, p := range progress {
		m := MemberProgress{
			Match: p.Match, Next: p.Next, State: p.State.String(),
			RecentActive: r.reachable(id), Learner: p.IsLearner, LogLost: r.losses.lost[id],
		}
		m.Weight, m.Worse = r.placing.compare(id)
		s.Progress[id] = m
	}
	return s
}
