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

// audience decides for whom a leader holds appends (holding).
type audience struct {
	*facts
	holding *holding
	askedAt map[uint64]uint64 // by reader: the tick at which it asked this leader for a read, if of late
}

// look decides, at a tick, for whom appends may be held: learners whose log the core knows, and that neither answer reads
// by leases, as writes wait for such members, nor have asked for a read of late. While a change of members is not in
// force, nothing is held, as the change may give a learner a vote.
func (a *audience) look(state func() *raft.LeaseStatus) {
	h := a.holding
	if h.longest == 0 || len(h.rows) == 0 && (!a.leads() || len(a.host.conf.GetLearners()) == 0) {
		return
	}
	maps.DeleteFunc(a.askedAt, func(_, at uint64) bool { return a.ticks-at > afterRead })
	if !a.leads() || h.change > a.emitted.index {
		h.members(nil)
		return
	}
	_, progress := a.core.Members()
	roster := state()
	var ids []uint64
	for _, id := range slices.Sorted(maps.Keys(progress)) {
		p := progress[id]
		if _, reads := a.askedAt[id]; p.IsLearner && p.State == tracker.StateReplicate && !reads && !answers(roster, id) && members.Learns(a.host.conf, id) {
			ids = append(ids, id)
		}
	}
	h.members(ids)
}

// answers reports whether the newest roster names a member.
func answers(s *raft.LeaseStatus, id uint64) bool {
	return s != nil && s.Roster != nil && slices.ContainsFunc(s.Roster.Spans, func(span leases.Assignment) bool {
		return slices.ContainsFunc(span.Responders, func(x leases.Responder) bool { return x.Node == leases.NodeID(id) })
	})
}

// asks lets what is held for a reader go: the reader is about to wait for it, because of a read or of a write of its clients.
func (a *audience) asks(id uint64) {
	if a.holding.longest == 0 || !a.leads() || !members.Learns(a.host.conf, id) {
		return
	}
	if a.askedAt == nil {
		a.askedAt = map[uint64]uint64{}
	}
	a.askedAt[id] = a.ticks
	a.holding.letGo(id)
}
