// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// reach counts the events of runs. A harness that reaches nothing finds
// nothing: tests fail if a count stays at zero over many seeds.
type reach struct {
	Elections, LeaderChanges                   uint64
	Commits, Applied                           uint64
	Puts, Swaps, Reads, Retries, Indeterminate uint64
	world.NetworkCounts
	Delivered, HungDisks, SlowMachines                uint64
	Partitions, OneWayPartitions, Isolations          uint64
	Crashes, ProcessKills, CrashesInWrite, TornWrites uint64
	LostRecords, Restarts                             uint64
	Pauses, SlowSyncs, DriftingClocks                 uint64
	Checkpoints, LogCuts, SnapshotsSent               uint64
	SnapshotsRestored, SnapshotsBusy                  uint64
	SimpleChanges, JointAuto, JointImplicit           uint64
	JointExplicit, JointsLeft, Learners, Promotions   uint64
	Removals, Returns, LeaderRemovals                 uint64
	Transfers, Campaigns, Forgets                     uint64
	AsyncRuns, SyncRuns, PreVoteRuns, LeaseRuns       uint64
	Bootstraps, SingleNodes, Histories, Bursts        uint64
	SnapshotsHeld, BoldOperators, Stalemates          uint64
	CoreRuns, HostRuns, Refusals                      uint64
	UnknownVerdicts, SnapshotsRefused, StatesKept     uint64
	AtRest                                            uint64
}

// Add adds the counts of another run.
func (r *reach) Add(o reach) { world.AddCounts(r, o) }

// Missing returns the names of what was never reached, but for stalemates,
// which nobody needs.
func (r reach) Missing() []string {
	r.Stalemates++
	return world.Zeros(r)
}

// String lists the counts, some to a line.
func (r reach) String() string { return world.Table(r) }

// earlyReach counts the events due to early applies.
type earlyReach struct {
	Applies uint64 // lists of entries handed out, some of which were not on the disk
	Full    uint64 // of these: with no room for another entry of a byte
	Behind  uint64 // crashes that left a log behind what had been applied
	Held    uint64 // checkpoints that waited for the log
}

// Add adds the counts of another run.
func (r *earlyReach) Add(o earlyReach) { world.AddCounts(r, o) }

// Missing names the events not reached.
func (r earlyReach) Missing() []string { return world.Zeros(r) }

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

// leasedReach counts the events of runs with leases.
type leasedReach struct {
	Runs, Notes, Spans, Coded, Mixed                    uint64
	LocalReads, LeaderReads, WaitedReads, HeldReads     uint64
	CutReads, Redirected, NoteCommits                   uint64
	Granted, Held, Revoked, Confirmed, Adopted          uint64
	Removed, Restored, Renamed, RetiredLeases, Ambushes uint64
	Lapsed, LearnerReads, FirstByNotes                  uint64
	Retuned, TunedSpans                                 uint64
}

// Add adds the counts of another run.
func (r *leasedReach) Add(o leasedReach) { world.AddCounts(r, o) }

// Missing returns the names of what was never reached.
func (r leasedReach) Missing() []string { return world.Zeros(r) }

// String lists the counts, some to a line.
func (r leasedReach) String() string { return world.Table(r) }
