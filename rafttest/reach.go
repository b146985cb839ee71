// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import "github.com/weftraft/weft/internal/world"

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
