// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// Status is a node's view of itself and of one group. Members, and the lists, are the node's own, and must not be changed.
type Status struct {
	ID, Group uint64
	Term      uint64
	Commit    uint64 // the last index known to be committed
	Applied   uint64 // the last index reported by the apply stage
	Lead      uint64 // 0 if no leader is known
	Role      raft.StateType
	LastIndex uint64 // of the log, including entries that the append stage has not written yet
	Emitted   uint64 // the last index handed to the apply stage
	Members   *pb.ConfState
	// FirstMembers are the members with which the group began, ascending; empty if this node does
	// not know the first members: the node has no state yet, or an earlier version of Weft began
	// the group.
	FirstMembers []uint64
	Progress     map[uint64]MemberProgress // at a leader
	Waiting      int                       // calls that have not ended
	Queued       int                       // bytes of commands that wait or are under way
	Stalled      error                     // the reason why no write is possible now, or nil
	// Unaddressed are the members without an address in the transport.
	Unaddressed []uint64
	// Settings has, by member, what does not fit this node's settings there, or is nil. Each error
	// wraps [ErrSettings]. If the setting decides what commands do, as the state machine says, nothing is
	// taken from that member until one of the two is started anew; other misfits, such as a heartbeat
	// interval that is as long as an election timeout, do no harm but to the group's rest.
	Settings map[uint64]error
	// Weight is the weight of this node as a leader of the group: see [Placement].
	Weight int
	// Resolve and Send are the stages before and behind the core.
	Resolve, Send StageStats
	Counters      Counters
	Coding        *CodingState      // nil without coding
	Leases        *raft.LeaseStatus // nil without roster leases
}

// MemberProgress is a leader's view of a member. Match is the last index that the member has, Next
// the next index to send; State is as in package tracker; RecentActive says that the leader has
// heard from the member within an election timeout; LogLost says that the member's log ends before
// an entry that the member has acknowledged ([ErrLogLost]); Learner says that the member is a
// learner. Weight is the member's weight as a leader, and Worse says that the member has reported, and is slower than
// the leader or has the weight 0 (see [Placement]).
type MemberProgress = replica.MemberProgress

// Counters count events since the start of a host: ticks, messages, writes, commands, reads by the
// proof that served them, snapshots, failed calls, terms led, and errors. A field is named after
// the counted events.
type Counters = replica.Counters

// StageStats count the work of a stage since its start: Items and their Bytes; Refused, the items
// for which there was no room; Busy, the time at work; Queued, the time from arrival to the start
// of work, summed over items; Length and Waiting, the items not done now and their bytes.
type StageStats = replica.StageStats

// CodingState is a node's view of coded replication in one group: the result of
// raft.RawNode.CodingStatus, and Counters, which count entries, units and bytes since the start of
// the host.
type CodingState = replica.CodingState
