// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// This file is the hosts of joints: they apply late, report before they apply, keep old
// checkpoints, and tear writes.

// lateApply returns how much longer than usual a node takes to apply something.
func (s *sim) lateApply(n *node) time.Duration {
	if j := s.plan.joints; j != nil {
		switch {
		case s.calm():
			return 0
		case s.Now() < n.lateUntil:
			s.joints.LateApplies++
			return n.lateUntil - s.Now()
		case j.draws.Chance(j.lag):
			s.joints.LateApplies++
			return j.draws.Within(0, j.lagMost)
		}
		return 0
	}
	if s.hurry() == hurryNot || s.calm() || !s.falls.Chance(s.plan.coded.brief.hurry.lag) {
		return 0
	}
	s.coded.LateApplies++
	return s.falls.Within(0, s.plan.coded.brief.hurry.lagMost)
}

// timedPolicy gives all followers the units of a level, and expects their answers in a
// time.
type timedPolicy struct {
	ecraft.Fixed
	predicted time.Duration
}

// Assign implements [ecraft.Policy].
func (t timedPolicy) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	plan := t.Fixed.Assign(r, units)
	plan.Predicted = t.predicted
	return plan
}

// reportsFirst reports whether the host reports entries as applied before it applies them. In a group with a node that
// does not code, only the leader's host does so, like etcd's.
func (p *coreProcess) reportsFirst() bool {
	j := p.s.plan.joints
	if j == nil || p.s.calm() || j.order[p.n.id] == applyThenReport {
		return false
	}
	return p.s.plan.coded.late == 0 || p.leads()
}

// reported tells of changes that were reported and are not in force.
func (p *coreProcess) reported(ents []*pb.Entry) {
	if slices.ContainsFunc(ents, func(e *pb.Entry) bool { return e.GetType() != pb.EntryNormal }) {
		p.s.joints.Reported++
		p.s.faults.meets(p.n, momentReported)
	}
}

// newCore makes the node's core, of whichever library.
func (p *coreProcess) newCore() (rawNode, error) {
	j := p.s.plan.joints
	p.async = p.s.plan.async
	if j == nil || j.upstream>>p.n.id&1 == 0 {
		return raft.NewRawNode(p.config())
	}
	// Upstream's candidates may lead before their own vote is written where writes are
	// asynchronous: docs/divergence.md.
	p.async = false
	return newUpstreamNode(p.config(), p.n.rand)
}

// tears returns how many pending records of a disk survive a loss of power, if that tears
// a hard state from a change of the members; 0 if not.
func (s *sim) tears(n *node) int {
	j, d := s.plan.joints, n.disk
	k := len(d.pending) - 1
	if j == nil || !s.plan.oneByOne || k < 1 || d.pending[k].state == nil || !j.draws.Chance(j.tear) ||
		!slices.ContainsFunc(d.pending, func(r record) bool { return r.entry != nil && r.entry.GetType() != pb.EntryNormal }) {
		return 0
	}
	s.joints.Torn++
	s.faults.torn(n)
	return k
}

// keepsOld reports whether hosts make no checkpoint where the members change.
func (s *sim) keepsOld() bool { return s.plan.joints != nil && s.plan.joints.old && !s.calm() }

// handed notes what the host is to apply.
func (p *coreProcess) handed(ents []*pb.Entry) {
	before := p.changes
	for _, e := range ents {
		if e.GetType() != pb.EntryNormal {
			p.changes++
		}
	}
	if p.changes > before {
		p.s.faults.meets(p.n, momentHanded)
	}
}

// advance applies what a Ready has and reports it, in the order and at the time of this
// host.
func (p *coreProcess) advance(rd raft.Ready) {
	report := func() {
		p.rn.Advance(rd)
		p.writing = false
		p.observe()
	}
	first := p.reportsFirst()
	late := p.s.plan.joints != nil && len(rd.CommittedEntries) > 0 && (first || p.applies.busy || p.s.plan.joints.lag > 0)
	switch {
	case !late:
		p.apply(rd.CommittedEntries)
		report()
		return
	case first:
		report()
		report = nil
	}
	p.applyLater(applyWork{m: &pb.Message{Entries: rd.CommittedEntries}, done: report})
	p.startApplies()
}

// applyLater queues entries for the state machine, which a host may report at once.
func (p *coreProcess) applyLater(w applyWork) {
	if p.async && p.reportsFirst() {
		p.respond(w.m)
		w.m = &pb.Message{Entries: w.m.GetEntries()}
	}
	if w.done == nil && len(w.m.GetResponses()) == 0 {
		p.reported(w.m.GetEntries())
	}
	p.applies.waiting = append(p.applies.waiting, w)
}

// served hears of a read that this node answers by its own lease.
func (p *coreProcess) served(rctx []byte, _ bool) {
	var id, ctx uint64
	if _, err := fmt.Sscanf(string(rctx), "%d/%d", &id, &ctx); err == nil {
		if look, waits := p.asked[ctx]; waits {
			p.s.check.servedByLease(p.n, p, look)
		}
	}
}

// sending tells of moments that a message shows.
func (s *sim) sending(n *node, m *pb.Message) {
	switch {
	case s.plan.joints == nil:
	case m.GetType() == pb.MsgTimeoutNow:
		s.faults.meets(n, momentTransfer)
	}
}

// startedOld counts starts from a checkpoint of before a change of the members in the log.
func (s *sim) startedOld(n *node) {
	if s.plan.joints != nil && slices.ContainsFunc(n.disk.live.entries, func(e *pb.Entry) bool {
		return e.GetType() != pb.EntryNormal && e.GetIndex() > released(&n.disk.live)
	}) {
		s.joints.OldRestarts++
	}
}
