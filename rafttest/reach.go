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
	AtRest                                            uint64
	HeldBack, Resumed                                 uint64 // by Config.Pace: appends, and members that are asked for again
}

// earlyReach counts the events due to early applies.
type earlyReach struct {
	Applies uint64 // lists of entries handed out, some of which were not on the disk
	Full    uint64 // of these: with no room for another entry of a byte
	Behind  uint64 // crashes that left a log behind what had been applied
	Held    uint64 // checkpoints that waited for the log
}

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
	counters := [...]*uint64{
		raft.CodingEncoded:     &r.Encoded,
		raft.CodingWhole:       &r.SentWhole,
		raft.CodingPushed:      &r.Pushes,
		raft.CodingAsked:       &r.Pulls,
		raft.CodingAnswered:    &r.Answers,
		raft.CodingCompleted:   &r.Completed,
		raft.CodingHeldBack:    &r.HeldBack,
		raft.CodingRejected:    &r.Rejected,
		raft.CodingFallback:    &r.Fallbacks,
		raft.CodingHedged:      &r.Hedges,
		raft.CodingRiderCommit: &r.RiderCommits,
		raft.CodingRecovery:    &r.Recoveries,
		raft.CodingRecovered:   &r.Recovered,
		raft.CodingCut:         &r.Cuts,
		raft.CodingStuck:       &r.Stuck,
		raft.CodingSnapshot:    &r.StuckSnapshots,
		raft.CodingHandOver:    &r.HandOvers,
		raft.CodingLeftOut:     &r.LeftOut,
		raft.CodingChecked:     &r.ChangesChecked,
		raft.CodingDelayed:     &r.Delayed,
	}
	if int(kind) >= len(counters) {
		return nil
	}
	return counters[kind]
}

// leasedReach counts the events of runs with leases.
type leasedReach struct {
	Runs, Notes, Spans, Coded, Mixed                    uint64
	LocalReads, LeaderReads, WaitedReads, HeldReads     uint64
	CutReads, Redirected, NoteCommits                   uint64
	Granted, Held, Revoked, Confirmed, Adopted          uint64
	Removed, Restored, Renamed, RetiredLeases, Ambushes uint64
	Lapsed, LearnerReads, FirstByNotes                  uint64
	Retuned, TunedSpans, UnfitClocks                    uint64
}
