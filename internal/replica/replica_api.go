// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// Call identifies a call of a user at a replica: Propose, Read and so on. The
// driver chooses it, and finds it again in a [Done].
type Call uint64

// Output is what a replica wants done. Each list is in order, and the lists
// belong to stages that need not wait for each other.
type Output struct {
	// Sends are messages to peers. They may leave at once and may get lost.
	Sends []wire.Message
	// Appends are writes to the log, to be done in order.
	Appends []Append
	// Applies are for the state machine, to be done in order.
	Applies []Apply
	// Snapshots are to be sent to peers.
	Snapshots []SnapshotSend
	// Done are the ended calls.
	Done []Done
	// Queries of gateways are for the state machine.
	Queries []Query
	// Compact, or nil, tells which entries the log may drop.
	Compact *Compact
}

// Empty reports whether there is nothing to do.
func (o *Output) Empty() bool {
	return len(o.Sends)+len(o.Appends)+len(o.Applies)+len(o.Snapshots)+len(o.Done)+len(o.Queries) == 0 && o.Compact == nil
}

// Append is a write to the log. When the write is durable, the driver calls
// [Replica.AppendDone] with the Append.
type Append struct {
	Write storage.Write
	bytes int // of the entries
	// number counts the writes of a replica.
	number uint64
	// responses are delivered when the write is durable.
	responses []*pb.Message
}

// Apply is a step of the state machine: when done, the driver calls [Replica.ApplyDone]
// with the Apply and the results.
type Apply struct {
	Batch Batch
	// First is the index of the first entry in the batch. A state machine that
	// is at Batch.Index or beyond already, because a snapshot was restored,
	// is left alone, and ApplyDone gets nil results.
	First     uint64
	calls     []appliedCall
	guests    []guestEntry
	responses []*pb.Message
}

// SnapshotSend asks for the state to be sent to a peer: see
// [Replica.SnapshotHeader] for how, and [Replica.SnapshotSent] for what follows.
type SnapshotSend struct {
	To      uint64
	Message *pb.Message // the MsgSnap
	Sources []uint64    // other members that may have applied as much, ascending
	Urgency wire.Urgency
}

// Compact tells which part of the log is not needed any more.
type Compact struct {
	// Snapshot is the durable state that stands for the entries up to its
	// index: for Log.SetSnapshot.
	Snapshot *pb.SnapshotMetadata
	// Index is up to where entries are dropped: for Log.Compact. At most
	// Snapshot.Index.
	Index uint64
}

// Done tells how a call ended.
type Done struct {
	Call Call
	// Result is the state machine's result, for an applied command; the new *raftpb.ConfState,
	// for a configuration change; else nil.
	Result any
	// Index is the command's index in the log, or the index a read waited for.
	Index uint64
	// Read is the ground of a read.
	Read ReadResult
	// Sent and Committed are times of an applied command, in the driver's time: when the
	// command left the queue for the first time, for the log of this node or for the leader,
	// and when this node knew of the commit of its entry.
	Sent, Committed Deadline
	// Err is nil or a *CallError.
	Err error
}

// Status is a replica's view of itself and its group. The fields are the same as in
// rawnode.Status, which explains each field.
type Status struct {
	ID, Group     uint64
	Term          uint64
	Commit        uint64
	Applied       uint64
	Lead          uint64
	Role          raft.StateType
	LastIndex     uint64
	Emitted       uint64
	Members       *pb.ConfState
	FirstMembers  []uint64
	Progress      map[uint64]MemberProgress
	Waiting       int
	Queued        int
	Stalled       error
	Unaddressed   []uint64
	Settings      map[uint64]error
	Weight        int
	Resolve, Send StageStats
	Counters      Counters
	Coding        *CodingState
	Leases        *raft.LeaseStatus
}

// MemberProgress is what a leader knows of a member.
type MemberProgress struct {
	Match, Next  uint64
	State        string
	RecentActive bool // heard from within an election timeout
	LogLost      bool // its log ends before its acknowledged index: see ErrLogLost
	Learner      bool
	Weight       int  // as a leader of this group
	Worse        bool // as a leader, by its figure or its weight: see placement.Good
}

// Counters count since the start of a replica.
type Counters struct {
	Ticks, MessagesIn, MessagesOut   uint64
	BadMessages                      uint64 // dropped, see ErrBadMessage
	AppendBytesOut                   uint64 // of entries, sent as a leader
	Appends, AppendedEntries         uint64
	AppendedBytes                    uint64
	AppliedEntries, AppliedCommands  uint64
	EarlyEntries                     uint64 // of AppliedEntries: not durable in this node's log
	DuplicateBatches                 uint64 // applied before, so skipped
	Proposals, Batches, ForwardedOut uint64
	ForwardedIn, RefusedIn, Resent   uint64
	Reads, ReadRounds                uint64
	ReadsWithoutRound                uint64 // answered by their policy alone
	// The next fields count reads without an error, by voucher; see [ServedBy].
	ReadsByLeader, ReadsByLease       uint64
	ReadsByRoster, ReadsByQuorum      uint64
	ReadsStale                        uint64
	ReadsByPermit                     uint64 // of ReadsByLease and ReadsByRoster: without a turn of the replica
	QuorumRounds                      uint64 // questions to a majority where their logs end
	QuorumFallbacks                   uint64 // quorum reads that had to ask the leader
	QuorumTurns                       uint64 // reads that asked a majority, as no leader answered
	QuorumRestarts                    uint64 // quorum reads that met a change of members
	SnapshotsSent, SnapshotsInstalled uint64
	SnapshotsFailed                   uint64 // to be sent, at this end or the other
	RestoresFailed                    uint64 // by this node's state machine
	Refused, Unknown                  uint64 // calls that ended so
	RefusedLate                       uint64 // of these: too near to their deadline to be sent
	Repeats                           uint64 // appends sent again, without entries
	LateAcks                          uint64 // acknowledgements without news, which waited
	// The next fields count what names and relays have saved, in bytes of data: left out of appends, of these for relays
	// to pass on, and passed on by this node; and questions of members that lacked such data, to this node as their leader.
	NamedBytes, RelayedBytes uint64
	PassedBytes, NamesLacked uint64
	Elections                uint64 // terms in which this node led
	Stalls                   uint64 // times this node could not write
	// The next fields count attempts of this node, as a leader, to hand leadership over, by reason:
	// a call asked for it, the node loses its vote, it has no room, its log's disk is late. Nobody
	// took over in time from a late leader, so it fell silent: Silences.
	HandOversAsked, HandOversLeaving uint64
	HandOversFull, HandOversLate     uint64
	// HandOversSlow counts those because another member was faster, HandOversPreferred those because
	// another member has a larger weight.
	HandOversSlow, HandOversPreferred uint64
	Silences                          uint64
	GatewaysAttached                  uint64 // streams begun, as the home of gateways
	GatewayBatches                    uint64 // whose results were for gateways
	ReportsAgain                      uint64 // to gateways, because they may be lost
	Queries                           uint64 // of gateways
	Strangers                         uint64 // messages of nodes whose group began with other first members, not looked at
}

// Deadline is a moment in the driver's time. Calls end then at the latest.
type Deadline = time.Duration
