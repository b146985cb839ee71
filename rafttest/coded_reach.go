// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/simkit"
)

// CodedReach counts what runs with coding came across.
type CodedReach struct {
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
	BudgetLooks                                         uint64
}

// Add adds the counts of another run.
func (r *CodedReach) Add(o CodedReach) { simkit.AddCounts(r, o) }

// Missing returns the names of what was never reached.
func (r CodedReach) Missing() []string { return simkit.Zeros(r) }

// String lists the counts, some to a line.
func (r CodedReach) String() string { return simkit.Table(r) }

// crashed counts what a loss of power did.
func (r *CodedReach) crashed(torn, lostCommit bool) {
	if torn {
		r.TornWrites++
	}
	if lostCommit {
		r.LostCommitIndexes++
	}
}

// codingRecorder counts what a node's core says it did.
type codingRecorder struct{ n *node }

// RecordCoding implements [raft.CodingRecorder].
func (c *codingRecorder) RecordCoding(e raft.CodingEvent) {
	s := c.n.s
	r := &s.coded
	one := map[raft.CodingEventKind]*uint64{
		raft.CodingEncoded: &r.Encoded, raft.CodingWhole: &r.SentWhole, raft.CodingPushed: &r.Pushes,
		raft.CodingAsked: &r.Pulls, raft.CodingAnswered: &r.Answers, raft.CodingCompleted: &r.Completed,
		raft.CodingHeldBack: &r.HeldBack, raft.CodingRejected: &r.Rejected, raft.CodingFallback: &r.Fallbacks,
		raft.CodingHedged: &r.Hedges, raft.CodingRiderCommit: &r.RiderCommits, raft.CodingRecovery: &r.Recoveries,
		raft.CodingRecovered: &r.Recovered, raft.CodingCut: &r.Cuts, raft.CodingStuck: &r.Stuck,
		raft.CodingSnapshot: &r.StuckSnapshots, raft.CodingHandOver: &r.HandOvers, raft.CodingLeftOut: &r.LeftOut,
		raft.CodingChecked: &r.ChangesChecked, raft.CodingDelayed: &r.Delayed,
	}[e.Kind]
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
	case raft.CodingSent, raft.CodingDelayed, raft.CodingPushed, raft.CodingHeldBack:
		return // too common for a line
	}
	s.story.aside(s.Now(), c.n.id, "coding: %+v", e)
}

// countCoded counts what a plan has.
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
	count(&r.ImpatientOperators, p.impatient && s.plan.membership > 0)
	count(&r.SmallMemories, p.memory > 0)
	count(&r.DeferredGossip, p.gap > 0)
	count(&r.VetoedRuns, p.veto)
	count(&r.CodedEven, s.plan.voters%2 == 0)
	count(&r.CodedSeven, s.plan.voters == maxNodes)
}
