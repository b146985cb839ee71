// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// Status is a node's view of itself and of one group.
type Status struct {
	ID, Group uint64
	Term      uint64
	Commit    uint64 // the last index known to be committed
	Applied   uint64 // the last index that the apply stage reported
	Lead      uint64 // 0 if no leader is known
	Role      raft.StateType
	LastIndex uint64 // of the log, as handed to the append stage
	Emitted   uint64 // the last index handed to the apply stage
	Members   *pb.ConfState
	// FirstMembers are those that the group began with, ascending; empty if this node
	// does not know them: it has no state yet, or an earlier version began the group.
	FirstMembers []uint64
	Progress     map[uint64]MemberProgress // at a leader
	Waiting      int                       // calls that have not ended
	Queued       int                       // bytes of commands that wait or are under way
	Stalled      error                     // why nothing can be written now, or nil
	// Unaddressed are the members that the transport has no address for.
	Unaddressed []uint64
	// Resolve and Send are the stages before and behind the core.
	Resolve, Send StageStats
	Counters      Counters
	Coding        *CodingState      // nil without coding
	Leases        *raft.LeaseStatus // nil without roster leases
}

// MemberProgress is what a leader knows of a member: Match and Next, the last index that
// the member has and the next one to send; State, as in package tracker; RecentActive,
// whether the leader has heard from the member within an election timeout; LogLost, whether
// the member's log ends before what the member has acknowledged ([ErrLogLost]); Learner.
type MemberProgress = replica.MemberProgress

// Counters count since the start of a host: ticks, messages, writes, commands, reads by who
// vouched for them, snapshots, calls that failed, terms led, and what went wrong. A field is
// named after what it counts.
type Counters = replica.Counters

// StageStats count what a stage has done since its start: Items and their Bytes; Refused,
// the items for which there was no room; Busy, the time at work; Queued, the time from
// arrival to the start of work, summed over items; Length and Waiting, the items that are
// not done now and their bytes.
type StageStats = replica.StageStats

// CodingState is a node's view of coded replication in one group: what
// raft.RawNode.CodingStatus returns, and Counters, which count entries, units and bytes
// since the start of the host.
type CodingState = replica.CodingState
