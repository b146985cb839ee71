// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	"github.com/weftraft/weft/raft"
)

// pace is a host's [raft.Pace]: now and then it holds a member back for a while, whatever the member lacks.
type pace struct {
	p *coreProcess
	// until says how long a member is held back, and permitted the index from which on it may be sent entries.
	until     map[uint64]time.Duration
	permitted map[uint64]uint64
}

// MaySend implements [raft.Pace].
func (h *pace) MaySend(to, next uint64) bool {
	p, s := h.p, h.p.s
	switch {
	case s.calm():
	case s.Now() < h.until[to]:
		s.reach.HeldBack++
		return false
	case s.paces.Chance(s.plan.pace):
		s.reach.HeldBack++
		lasting := s.paces.Within(0, s.plan.paceMost)
		h.until[to] = s.Now() + lasting
		p.n.later(lasting, func() {
			s.reach.Resumed++
			p.rn.(*raft.RawNode).ResumeAppends(to)
			p.did(nil)
		})
		return false
	}
	h.permitted[to] = next
	return true
}

// Sent implements [raft.Pace].
func (h *pace) Sent(to, first, last uint64, _ int) {
	if h.permitted[to] != first || last < first {
		h.p.s.fail(paced, "node %d sends node %d the entries %d to %d; its host permits entries from %d on", h.p.n.id, to, first, last, h.permitted[to])
	}
	delete(h.permitted, to)
}
