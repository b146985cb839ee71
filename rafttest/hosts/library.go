// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	weftcore "github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// core is the RawNode of a library, with a common set of types in place of each
// library's own.
type core interface {
	weftcore.Shared
	TickQuiesced()
	Ready() raft.Ready
	// Advance is RawNode's, for the last Ready.
	Advance()
	ReportSnapshot(id uint64, ok bool)
	State() weftcore.CoreState
	// Visit shows what a leader knows of each member, in order of id.
	Visit(func(id uint64, learner bool, pr tracker.Progress))
}

// library makes cores. New may count events in Reach.
type library struct {
	Name string
	New  func(*reach, raft.Config) (core, error)
	// Coded says whether entries may travel coded.
	Coded bool
	// Leased says that members answer reads by roster leases.
	Leased bool
	// Types is the number of the library's message types, for hosts that count
	// by type.
	Types int
	// hasty members leave for another library while there are coded entries.
	hasty bool
}

// upstreamTypes is the number of message types that raftpb names.
var upstreamTypes = len(pb.MessageType_name)

// weft is this module's library, as seen by a host after a swap of the import.
func weft() library {
	return library{Name: "weft", Types: upstreamTypes, New: newWeft}
}

func newWeft(_ *reach, cfg raft.Config) (core, error) {
	rn, err := raft.NewRawNode(&cfg)
	if err != nil {
		return nil, err
	}
	return weftCore{rn}, nil
}

type weftCore struct{ *raft.RawNode }

var _ core = weftCore{}

func (c weftCore) Advance() { c.RawNode.Advance(raft.Ready{}) }

func (c weftCore) ReportSnapshot(id uint64, ok bool) {
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.RawNode.ReportSnapshot(id, status)
}

func (c weftCore) State() weftcore.CoreState {
	s := c.BasicStatus()
	return weftcore.CoreState{Term: s.GetTerm(), Commit: s.GetCommit(), Applied: s.Applied, Lead: s.Lead, Role: s.RaftState}
}

func (c weftCore) Visit(see func(id uint64, learner bool, pr tracker.Progress)) {
	c.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		see(id, typ == raft.ProgressTypeLearner, pr)
	})
}

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
