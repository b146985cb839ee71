// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// codedReach counts the events of runs with coding.
type codedReach struct {
	Runs, CodedAppends, CodedCommits, RidersDecided     uint64
	Encoded, SentWhole, Pushes, Pulls, Answers          uint64
	Completed, HeldBack, Rejected                       uint64
	Fallbacks, Hedges, RiderCommits, LeftOut            uint64
	Recoveries, Recovered, Cuts, CutEntries             uint64
	Stuck, StuckSnapshots, HandOvers                    uint64
	ChangesChecked, Replacements, Shrinks               uint64
	UnitsLost, UnitsCorrupted, UnitsWrong               uint64
	Upgrades, Densified, Downgrades, MixedRuns          uint64
	MostDead, TornWrites, LostCommitIndexes             uint64
	FullPolicies, FixedPolicies, WildPolicies           uint64
	AdaptivePolicies, LevelledPolicies, ClearPrefixes   uint64
	ImpatientOperators, WholeRestarts, VetoedRuns       uint64
	Delayed, SmallMemories, DeferredGossip, Polls       uint64
	CodedEven, CodedSeven, CodedLearners, RecoveryLooks uint64
	BudgetLooks, ReportsLost, LateSeals, PlainStarts    uint64
	Falls, Held, OfCommitted                            uint64
	Hurried, InARow, InARowApplied, LateApplies         uint64
	HurriedDrops, ChangesRefused                        uint64
	Ambushes, Starved, Blocked, Echoes                  uint64
	PlainLeaders, Passes, ZonePasses                    uint64
	Breaks, SlowSnapshots, Stranded                     uint64
}

// Add adds the counts of another run.
func (r *codedReach) Add(o codedReach) { world.AddCounts(r, o) }

// Missing returns the names of the counts never reached, but for falls, held work,
// and recoveries of committed entries: these are sure to come only in runs asked to
// have them.
func (r codedReach) Missing() []string {
	r.Falls, r.Held, r.OfCommitted = r.Falls+1, r.Held+1, r.OfCommitted+1
	r.Hurried, r.InARow, r.InARowApplied, r.LateApplies = r.Hurried+1, r.InARow+1, r.InARowApplied+1, r.LateApplies+1
	r.HurriedDrops, r.ChangesRefused = r.HurriedDrops+1, r.ChangesRefused+1
	r.Ambushes, r.Starved, r.Blocked, r.Echoes = r.Ambushes+1, r.Starved+1, r.Blocked+1, r.Echoes+1
	r.Breaks, r.SlowSnapshots, r.Stranded = r.Breaks+1, r.SlowSnapshots+1, r.Stranded+1
	return world.Zeros(r)
}

// String lists the counts, some to a line.
func (r codedReach) String() string { return world.Table(r) }

// crashed counts the effects of a loss of power.
func (r *codedReach) crashed(torn, lostCommit bool) {
	if torn {
		r.TornWrites++
	}
	if lostCommit {
		r.LostCommitIndexes++
	}
}

// codingRecorder counts the events of a node's core.
type codingRecorder struct{ n *node }

// RecordCoding implements [raft.CodingRecorder].
func (c *codingRecorder) RecordCoding(e raft.CodingEvent) {
	s := c.n.s
	r := &s.coded
	s.faults.happens(c.n, moment(e.Kind))
	if e.Kind == raft.CodingFallback || e.Kind == raft.CodingHedged || e.Kind == raft.CodingChecked {
		s.meets(c.n, momentRaised)
	}
	one := r.counter(e.Kind)
	if one != nil {
		*one++
	}
	switch e.Kind {
	case raft.CodingEncoded:
		if p := c.n.proc; p != nil && len(p.state().conf.GetLearners()) > 0 {
			r.CodedLearners++
		}
		return
	case raft.CodingCut:
		r.CutEntries += uint64(e.Count)
	case raft.CodingRecovery:
		if known := s.check.committed; e.Index < uint64(len(known)) && known[e.Index] != 0 {
			r.OfCommitted++
		}
	case raft.CodingSent, raft.CodingDelayed, raft.CodingPushed, raft.CodingHeldBack:
		return // too common for a line
	}
	s.story.Aside(c.n.id, "coding: %+v", e)
}

// counter returns what counts a kind of event; nil if nothing does.
func (r *codedReach) counter(kind raft.CodingEventKind) *uint64 {
	switch kind {
	case raft.CodingEncoded:
		return &r.Encoded
	case raft.CodingWhole:
		return &r.SentWhole
	case raft.CodingPushed:
		return &r.Pushes
	case raft.CodingAsked:
		return &r.Pulls
	case raft.CodingAnswered:
		return &r.Answers
	case raft.CodingCompleted:
		return &r.Completed
	case raft.CodingHeldBack:
		return &r.HeldBack
	case raft.CodingRejected:
		return &r.Rejected
	case raft.CodingFallback:
		return &r.Fallbacks
	case raft.CodingHedged:
		return &r.Hedges
	case raft.CodingRiderCommit:
		return &r.RiderCommits
	case raft.CodingRecovery:
		return &r.Recoveries
	case raft.CodingRecovered:
		return &r.Recovered
	case raft.CodingCut:
		return &r.Cuts
	case raft.CodingStuck:
		return &r.Stuck
	case raft.CodingSnapshot:
		return &r.StuckSnapshots
	case raft.CodingHandOver:
		return &r.HandOvers
	case raft.CodingLeftOut:
		return &r.LeftOut
	case raft.CodingChecked:
		return &r.ChangesChecked
	case raft.CodingDelayed:
		return &r.Delayed
	}
	return nil
}

// countCoded counts the parts of a plan.
func (s *sim) countCoded() {
	p, r := s.plan.coded, &s.coded
	if p == nil {
		return
	}
	count := func(to *uint64, is bool) {
		if is {
			*to++
		}
	}
	r.Runs++
	count(&r.MixedRuns, p.late != 0)
	count(&r.FullPolicies, p.policy == policyFull)
	count(&r.FixedPolicies, p.policy == policyFixed)
	count(&r.WildPolicies, p.policy == policyWild)
	count(&r.AdaptivePolicies, p.policy == policyAdaptive)
	count(&r.LevelledPolicies, p.policy == policyLevelled)
	count(&r.ClearPrefixes, p.prefix > 0)
	count(&r.ImpatientOperators, p.impatient && (s.plan.membership > 0 || p.brief.has(actChange, actReplace)))
	count(&r.SmallMemories, p.memory > 0)
	count(&r.DeferredGossip, p.gap > 0)
	count(&r.VetoedRuns, p.veto)
	count(&r.CodedEven, s.plan.voters%2 == 0)
	count(&r.Hurried, s.hurry() != hurryNot)
	count(&r.CodedSeven, s.plan.voters == maxNodes)
}
