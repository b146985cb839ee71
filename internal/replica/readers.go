// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// afterRead is for how many ticks a reader that asked for a read is sent appends at once.
const afterRead = 2

// holdFor returns for how long a leader holds appends to readers.
func holdFor(cfg *Config) time.Duration {
	if cfg.Hold != 0 {
		return max(cfg.Hold, 0)
	}
	return min(cfg.Tick/holdsOfATick, maxHold)
}

// lookAtReaders decides, at a tick, for whom appends may be held (holding): learners whose log the core knows, and that neither
// answer reads by leases, as writes wait for such members, nor have asked for a read of late. While a change of members is
// not in force, nothing is held, as the change may give a learner a vote.
func (r *Replica) lookAtReaders() {
	h := &r.holding
	if h.longest == 0 || len(h.rows) == 0 && (!r.leads() || len(r.host.conf.GetLearners()) == 0) {
		return
	}
	maps.DeleteFunc(r.readAt, func(_, at uint64) bool { return r.ticks-at > afterRead })
	if !r.leads() || h.change > r.emitted.index {
		h.members(nil)
		return
	}
	_, progress := r.core.Members()
	answers := r.answersReads()
	var ids []uint64
	for _, id := range slices.Sorted(maps.Keys(progress)) {
		p, _ := progress[id]
		if _, reads := r.readAt[id]; p.IsLearner && p.State == tracker.StateReplicate && !reads && !answers(id) && members.Learns(r.host.conf, id) {
			ids = append(ids, id)
		}
	}
	h.members(ids)
}

// answersReads reports which members the newest roster names.
func (r *Replica) answersReads() func(id uint64) bool {
	s := r.leaseState()
	return func(id uint64) bool {
		return s != nil && s.Roster != nil && slices.ContainsFunc(s.Roster.Spans, func(a leases.Assignment) bool {
			return slices.ContainsFunc(a.Responders, func(x leases.Responder) bool { return x.Node == leases.NodeID(id) })
		})
	}
}

// JoinedAppends returns how many appends to readers have left with the one before.
func (r *Replica) JoinedAppends() uint64 { return r.holding.joined }

// attend tells the leader at each tick that this learner is the home of gateways, which wait for what it applies: the question
// where the log ends stands for a read, and nobody waits for its answer.
func (r *Replica) attend() {
	if r.home != nil && len(r.home.guests) > 0 && r.state.Lead != raft.None && !r.leads() && members.Learns(r.host.conf, r.cfg.ID) {
		r.askLogEnd(r.state.Lead, 0)
	}
}

// readerAsks lets what is held for a reader go: the reader is about to wait for it, because of a read or of a write of its clients.
func (r *Replica) readerAsks(id uint64) {
	if r.holding.longest == 0 || !r.leads() || !members.Learns(r.host.conf, id) {
		return
	}
	if r.readAt == nil {
		r.readAt = map[uint64]uint64{}
	}
	r.readAt[id] = r.ticks
	r.holding.letGo(id)
}
