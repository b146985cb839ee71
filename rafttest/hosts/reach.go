// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// reach counts the events of runs: an event with count zero was not tested.
type reach struct {
	Commands, Reads, Duplicates, Histories uint64
	world.NetworkCounts
	HungDisks, SlowDisks, SlowMachines                                 uint64
	Crashes, TornAppends, Kills, Restarts                              uint64
	Pauses, Cuts, StreamBreaks, Leaders                                uint64
	WholeAppends, ShortAppends, AnswersDropped                         uint64
	HeartbeatsMerged, HeartbeatsAnswered                               uint64
	HeadsRead, Sideloaded, Inlined, ReadBack                           uint64
	LocalsShuffled, Conflicts, SnapshotsSent                           uint64
	SnapshotsRestored, LogCuts                                         uint64
	LazyMembers, Promotions, Joints, Removals                          uint64
	Transfers, QuotaRefusals, TokensTaken, TokensGiven                 uint64
	CodedEntries, Units, Asks, Riders, HeldBack, LibraryChanges, Rests uint64
	// ChangesPending are changes of the members proposed at a leader while another was not
	// applied there. ChangesHeld were held back by a core; ChangesRefused and ChangesApplied are
	// counted at each member; ChangesReportedFirst, where leaders reported before they applied;
	// ChangesAgain, where a state that held them was handed them again.
	ChangesPending, ChangesHeld, ChangesRefused, ChangesApplied, ChangesReportedFirst, ChangesAgain uint64
}

// Add adds the counts of another run.
func (r *reach) Add(o reach) { world.AddCounts(r, o) }

// Missing returns the names of what was never reached.
func (r reach) Missing() []string { return world.Zeros(r) }

// String lists the counts, some to a line.
func (r reach) String() string { return world.Table(r) }

// RecordCoding counts a core's reports.
func (r *reach) RecordCoding(e raft.CodingEvent) {
	switch e.Kind {
	case raft.CodingFallback, raft.CodingHedged:
		r.Riders++
	case raft.CodingHeldBack:
		r.HeldBack++
	}
}

// leaseReach counts the events of runs with leases.
type leaseReach struct {
	LocalReads, LeaderReads, WaitedReads, HeldReads, Redirected, NoteCommits uint64
	Granted, Revoked, Confirmed, Lapsed, Adopted, Removed, Restored          uint64
	Renamed, Retired, PermitReads                                            uint64
}

// Add adds the counts of another run.
func (r *leaseReach) Add(o leaseReach) { world.AddCounts(r, o) }

// Missing returns the names of what was never reached.
func (r leaseReach) Missing() []string { return world.Zeros(r) }

// String lists the counts, some to a line.
func (r leaseReach) String() string { return world.Table(r) }
