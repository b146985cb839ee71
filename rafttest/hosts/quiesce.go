// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// restTicks is after how many ticks without work a group comes to rest.
const restTicks = 10

// mayRest reports whether groups of this run come to rest. Groups without
// CheckQuorum do; with CheckQuorum a leader at rest would step down.
func (h *cockroach) mayRest() bool { return !h.w.plan.checkQuorum }

// maybeQuiesce brings the group to rest if no work is left: the leader's whole
// log is committed and applied, and every member has the log. Match decides, so
// Match must not count entries that a member has yet to complete: nobody would
// complete the entries any more.
func (h *cockroach) maybeQuiesce() {
	if h.quiesced || h.core.HasReady() {
		return
	}
	h.idle++
	s := h.core.State()
	if !h.mayRest() || s.Role != raft.StateLeader || h.idle < restTicks ||
		!h.level(s.Term, s.Commit) || !h.allReturned() {
		return
	}
	all := true
	h.visit(func(_ uint64, _ bool, pr tracker.Progress) { all = all && pr.Match == s.Commit })
	if !all {
		return
	}
	h.visit(func(id uint64, _ bool, _ tracker.Progress) { h.addBeat(id, beatQuiesce, s.Term, s.Commit) })
	h.rest()
}

// level reports whether a member is where the group comes to rest, and has
// nothing to do.
func (h *cockroach) level(term, commit uint64) bool {
	s := h.core.State()
	return s.Term == term && s.Commit == commit && h.m.disk.live.last() == commit && h.state.at.index == commit &&
		len(h.locals) == 0 && len(h.m.wanted) == 0 && !h.m.syncing
}

// followToRest brings a follower to rest if the follower is where its leader
// says. Otherwise the follower has the leader go on.
func (h *cockroach) followToRest(from, term, commit uint64) {
	if h.level(term, commit) {
		h.rest()
	} else {
		h.addBeat(from, beatRefuse, term, commit)
	}
}

func (h *cockroach) rest() {
	h.quiesced = true
	h.w.reach.Rests++
	h.w.say(h.m.id, "rests")
}

// wake ends a rest.
func (h *cockroach) wake() {
	if h.quiesced {
		h.w.say(h.m.id, "wakes")
	}
	h.quiesced, h.idle = false, 0
}
