// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

// Status returns a copy of the replica's view of itself and its group.
func (r *Replica) Status() Status {
	s := Status{
		ID: r.cfg.ID, Group: r.cfg.Group, CoreState: r.core.State(),
		LastIndex: r.last, Emitted: r.emitted.index, Members: r.host.conf, FirstMembers: r.founding.members,
		Waiting: r.calls.live, Queued: r.outbox.queued, Stalled: r.stall.reason, Resolve: r.resolving.stats, Send: r.sends.stats, Counters: r.count,
		Coding: r.codingState(), Leases: r.leaseState(), Unaddressed: r.unaddressed,
	}
	if !r.leads() {
		return s
	}
	_, progress := r.core.Members()
	s.Progress = make(map[uint64]MemberProgress, len(progress))
	for id, p := range progress {
		s.Progress[id] = MemberProgress{
			Match: p.Match, Next: p.Next, State: p.State.String(),
			RecentActive: r.reachable(id), Learner: p.IsLearner, LogLost: r.lostLogs[id],
		}
	}
	return s
}
