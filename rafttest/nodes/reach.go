// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// reach counts the events of runs. An event never reached is not tested.
type reach struct {
	Elections, LeaderChanges                        uint64
	Commands, Writes, Reads, Retries, Indeterminate uint64
	Repeated, Expired                               uint64 // by sessions
	Refused, AtDoor, Unknown, Overloaded            uint64 // calls
	Crashes, Kills, TornWrites, TornTails, Failures uint64
	world.NetworkCounts
	Partitions, Isolations, OneWay                       uint64
	SlowDisks, FullDisks, Stalls, Pauses                 uint64
	HungDisks, SlowMachines                              uint64
	DamageRefused, DamageCut, DamageUnread, DamageMet    uint64 // damaged logs: not opened; opened without their end, or with entries that cannot be read; met by a running node
	DamageHarmless                                       uint64
	ElectedByFull                                        uint64 // leaders after a dead leader, elected by the vote of a node without room
	LinkDrops, InboxDrops, Unread                        uint64 // Unread: messages that waited for room
	Superseded, HangUps                                  uint64
	Transfers, Campaigns, Floods                         uint64
	Changes, ChangesDone, Joins, Retirements             uint64
	Deafened, AppendedAgain                              uint64 // members, and changes of the group's members
	StatesAhead, RepeatsPassed                           uint64 // of their cores; changes that stand in the log again, there
	SnapshotsSent, SnapshotsRestored, SnapshotsRefused   uint64
	Fetched, FetchesResumed, SourcesAbandoned            uint64 // snapshots of followers; after a silence; in the middle of a body
	StatesKept, Compactions                              uint64
	EarlyApplies                                         uint64 // steps with entries that the own log had not stored
	LogsBehind, StatesAheadOfLogs                        uint64 // starts with a log behind what had been applied; behind the state that survived
	Coded, Pushed, Asked, Completed, HeldBack            uint64
	Raised, Recoveries, Densified                        uint64
	RosterReads, LeaseReads, QuorumReads, StaleReads     uint64 // by the kind of voucher
	PermitReads, PermitReadsAtPause                      uint64 // of RosterReads and LeaseReads: without a turn
	QuorumFallbacks, QuorumRestarts, QuorumTurns         uint64
	WaitedReads, HeldReads, CutReads                     uint64 // of the reads at responders
	Wishes, Granted, Revoked, Adopted, Removed, Restored uint64 // leases and rosters
	NoteCommits                                          uint64
	TunerSwitches, TunedSpans                            uint64
	LogsFound                                            uint64 // at starts, compared with what was durable
	CodedCommits, RidersDecided                          uint64 // entries recounted from disks; those that riders have committed
	LeasedRuns                                           uint64 // runs with leases on
	Named, NamesFilled, NamesGone, NamePauses            uint64 // messages with names; lacks answered with the data, and without; peers that got none for a while
	NamesJoined, NamesLate                               uint64 // at once; with the leader's data
	NamesLacked, NamesGivenUp, FillsLate                 uint64
	RelayedBytes, RelaysWanted, RelaysOverdue            uint64 // named with a relay; asked of relays; relays that were silent
	ReadersRelayed, NameRuns, AppendsJoined              uint64 // RelayedBytes without zones; messages with one name for many entries; appends to readers
	RelaysPassed, RelaysHadNot                           uint64 // Wants answered with the data, and without
	CatchUps, CatchUpsDelayed                            uint64 // windows of missed entries; those of them that had to wait
	UnitsPassedInZones, FarPulls                         uint64 // messages of voters with units of others; questions for units to other zones, of nodes with zones
	PlacedRuns, HandOversSlow, HandOversPreferred        uint64 // runs with placement, and what leaders did there
}

// moment is a moment in which something is under way at a member.
type moment int

const (
	momentAppended moment = iota // a change of the members goes into the log
	momentRaised                 // coded entries are raised, or recovered
	momentLeased                 // a message about leases leaves
	momentSnapshot               // a snapshot leaves
	momentTransfer               // another is told to campaign
	momentElected
	moments
)

// jointReach counts the events of joints.
type jointReach struct {
	Ambushes, LateApplies, PlainMembers uint64
	Moments                             [moments]uint64
}

// gateReach counts what gateways came to. None may be zero.
type gateReach struct {
	Batches, Commands, Resent, Homes, Superseded, Gaps uint64
	Nearer                                             uint64 // moves into the zone of the gateway
	Queries, QueriesAgain, AtReaders                   uint64 // AtReaders: queries answered by learners
	Refused, Unknown                                   uint64 // calls
	Crashes, CutOffs, Pauses, EarlierNodes             uint64
	ReportsAgain                                       uint64 // by homes
	Held                                               uint64 // times that batches waited for a round of a busy leader
	Troubles                                           [homeTroubles]uint64
}

// RecordCoding counts the reports of a core.
func (r *reach) RecordCoding(e raft.CodingEvent) {
	switch e.Kind {
	case raft.CodingEncoded:
		r.Coded++
	case raft.CodingPushed:
		r.Pushed++
	case raft.CodingAsked:
		r.Asked++
	case raft.CodingCompleted:
		r.Completed++
	case raft.CodingHeldBack:
		r.HeldBack++
	case raft.CodingFallback, raft.CodingHedged:
		r.Raised++
	case raft.CodingRecovery:
		r.Recoveries++
	}
}

// countRead counts a read by the node that vouched for the read.
func (r *reach) countRead(by replica.ServedBy) {
	switch by {
	case replica.ServedByLease:
		r.LeaseReads++
	case replica.ServedByRoster:
		r.RosterReads++
	case replica.ServedByQuorum:
		r.QuorumReads++
	case replica.ServedStale:
		r.StaleReads++
	}
}

// countTuned counts the spans that are wanted by a tuner.
func (r *reach) countTuned(s *raft.LeaseStatus) {
	if s.Roster == nil {
		return
	}
	for _, want := range s.Roster.Wanted {
		if want.Tuned {
			r.TunedSpans++
		}
	}
}
