// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// ReplicaConfig configures the decisions of a [Host]. ID and Log must be set; every other field has
// a useful zero value. Sizes are in bytes.
type ReplicaConfig struct {
	// ID is this node's identity, in all groups; Group is the group's identity. An ID is used once: a node that was
	// removed, or has lost its log, comes back under another one (see raft.Config).
	ID, Group uint64
	// Core is the library to drive: [Weft] (if nil) or [Upstream].
	Core replica.NewCore
	// Log is the durable log of the group at this node.
	Log Log

	// Peers are the first voters of a new group, this node among them, and the same at all these
	// voters; nodes whose lists differ accept nothing from each other (ErrFirstMembers). Peers is
	// not used after the log has begun. A node that joins a group later has no Peers, and waits
	// until the group adds the node.
	Peers []uint64
	// Boot numbers the starts of this node. It must differ from start to start, in its lower 30 bits, too, and should be
	// larger at each: a replica that sees a larger Boot of its own node raises its Boot above the one seen. It is less
	// than 1<<63.
	Boot uint64

	// ElectionTick and HeartbeatTick are as in raft.Config; 0 means 10 and 1.
	ElectionTick, HeartbeatTick int
	// Coding, unless nil, turns coded replication of large entries on: each member gets a part of
	// the entry, and the members complete each other's parts. The core must be [Weft]; a Policy
	// belongs to one replica. Times measured for the Policy are in the driver's time.
	Coding *raft.Coding

	// Leases, unless nil, turns roster leases on: the leader, and the nodes named by a roster,
	// answer linearizable reads from their own state, without a message. The core must be [Weft],
	// ReadOnly safe, and PreVote and CheckQuorum on. Leases.Spans is called for each command of a
	// user, not for log entries; a coded entry writes every key. Leases.Served is not used, and
	// Leases.Tick is Config.TickInterval if 0. docs/roster-leases.md names the loads that gain by leases.
	Leases *raft.Leases
	// Clock is the clock of Leases and Coding, read when the replica takes an input. A nil Clock
	// without Leases is the time of the replica's inputs; a nil Clock with Leases is a clock that
	// includes the time for which the system is suspended (CLOCK_BOOTTIME). That clock is watched:
	// while the clock runs beyond Leases.DriftPPM, leases stand aside (LeaseStatus.Aside). With
	// Leases, goroutines that read call the clock's Now, several at once.
	Clock raft.Clock

	// ReadOnly says how reads are confirmed, and must be raft.ReadOnlySafe, its zero value. By
	// raft.ReadOnlyLeaseBased a leader that is cut off would miss commands that another leader has
	// acknowledged; Leases give the leader reads without a message that miss none.
	ReadOnly raft.ReadOnlyOption
	// NoPreVote and NoCheckQuorum switch off PreVote and CheckQuorum, which are on by default.
	NoPreVote, NoCheckQuorum bool

	// MaxCommandBytes bounds one command; at most 48 MiB and MaxQueueBytes. 0 means 8 MiB.
	MaxCommandBytes int
	// MaxBatchBytes bounds the commands that share an entry, unless a single command is larger; at most 48 MiB. 0
	// means 256 KiB.
	MaxBatchBytes int
	// MaxQueueBytes bounds the commands that wait at this node or are under way. Commands beyond
	// the bound are refused with ErrOverloaded; 0 means 64 MiB.
	MaxQueueBytes int
	// MaxCalls bounds the calls under way; calls beyond the bound are refused with
	// ErrOverloaded. 0 means 65,536.
	MaxCalls int
	// Budget, unless nil, bounds the waiting commands of all groups that share the Budget, in
	// addition to MaxQueueBytes; and the entries that their leaders send while this node cannot write
	// (ErrStalled), in addition to MaxInflightBytes: those beyond are dropped, and sent again later. A command that is larger than the whole Budget is refused with
	// ErrTooLarge.
	Budget *Budget
	// Placement, unless nil, is this node's, shared by all groups of the node: the leader of the
	// group hands over to a member that is faster, or preferred. See [NewPlacement].
	Placement *Placement
	// LeaderWeight is this node's weight as a leader of this group, in place of the weight of
	// Placement: 1 to 1000; 0 means the weight of Placement, and less than 0 the weight 0.
	LeaderWeight int
	// MaxBatches bounds the batches under way; at most 1,048,576. 0 means 256.
	MaxBatches int

	// EagerBatches is the number of batches under way at which the next batch waits until the batch
	// is full, a batch ends, or 2 ms have passed since the last one left (while processors are
	// busy 8 ms, or a tick if that is shorter); 0 means 2. A larger number costs processor time, a
	// smaller number latency.
	EagerBatches int

	// MaxAppendBytes bounds the entries of one message; 0 means 1 MiB.
	MaxAppendBytes int
	// MaxInflightMsgs and MaxInflightBytes bound the appends under way to one follower; 0 means 256
	// and 32 MiB. MaxInflightBytes is at least MaxAppendBytes.
	MaxInflightMsgs  int
	MaxInflightBytes int
	// MaxUncommittedBytes bounds the leader's uncommitted entries; 0 means 128 MiB.
	MaxUncommittedBytes int
	// MaxApplyBytes bounds the commands that the state machine is given before its next report; 0
	// means 8 MiB.
	MaxApplyBytes int
	// MaxEarlyApplyBytes bounds the entries that the state machine is given before they are durable in
	// the log of this node; a majority has them. So a leader with a slow disk, or a disk that
	// hangs, answers as soon as the other members allow, until the bound is reached or, after an
	// election timeout, the leader goes. A coded entry may need the leader's own copy, and then waits
	// for the disk. 0 means 16 MiB; -1: none, as always with the core [Upstream]. See [StateMachine].
	MaxEarlyApplyBytes int

	// MaxTurnBytes bounds the messages that leave in one turn, in addition to control messages;
	// messages beyond the bound are dropped. 0 means 512 MiB.
	MaxTurnBytes int

	// RetainEntries and RetainBytes bound the part of the log before the durable index that is kept
	// for followers that lag; the lesser bound counts. 0 means 100,000 and 64 MiB. For a follower
	// that gets a snapshot, a leader keeps the entries after the snapshot, up to 16 times as much,
	// until the follower has them.
	RetainEntries uint64
	RetainBytes   uint64

	// MaxPromoteLag is the number of entries that a learner may lack at its promotion; 0 means
	// 1,000.
	MaxPromoteLag uint64

	// Rand draws the election timeouts; nil means crypto/rand. Upstream's
	// library has a source of its own.
	Rand raft.Rand
	// Logger is the logger of the core; nil means silence.
	Logger raft.Logger
}

// settings returns the configuration in the replica's type.
func (c ReplicaConfig) settings() replica.Settings { return replica.Settings(c) }

// Validate returns an error that names every mistake, or nil. A field left at zero counts as its
// default.
func (c ReplicaConfig) Validate() error { return c.settings().Validate() }
