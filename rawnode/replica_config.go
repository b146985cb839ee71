// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// ReplicaConfig configures what a [Host] decides. ID and Log must be set; every other
// field has a useful zero value. Sizes are in bytes.
type ReplicaConfig struct {
	// ID is this node's identity, in all groups; Group is the group's identity.
	ID, Group uint64
	// Core is the library to drive: [Weft] (if nil) or [Upstream].
	Core replica.NewCore
	// Log is the durable log of the group at this node.
	Log Log

	// Peers are the first voters of a new group, this node among them, and the same at all of
	// them; nodes whose lists differ take nothing from each other (ErrFirstMembers). Peers is
	// not looked at once the log has begun. A node that joins a group later has no Peers, and
	// waits to be added.
	Peers []uint64
	// Boot tells the starts of this node apart, and must be larger at each start. A replica
	// that learns of a larger Boot of its own corrects its Boot.
	Boot uint64

	// ElectionTick and HeartbeatTick are as in raft.Config; 0 means 10 and 1.
	ElectionTick, HeartbeatTick int
	// Coding, unless nil, has large entries travel coded: each member gets what
	// it needs of them, and they complete each other's. The core must be [Weft];
	// a Policy belongs to one replica. What it measures is in the driver's time.
	Coding *raft.Coding

	// Leases, unless nil, turns roster leases on: linearizable reads are answered by the
	// nodes that a roster names, from their own state, and by the leader, both without a
	// message. The core must be [Weft], ReadOnly safe, and PreVote and CheckQuorum on. Leases.Spans is asked
	// for each command of a user, not for log entries; Leases.Served is not used. docs/roster-leases.md says when leases are worth it.
	Leases *raft.Leases
	// Clock is what Leases and Coding go by; nil: the time of the replica's inputs, which
	// is no clock for leases. The clock is read when an input is looked at. With Leases, nil
	// is a clock that counts the time for which the system is suspended (CLOCK_BOOTTIME), and
	// is watched: while it runs beyond Leases.DriftPPM, leases stand aside (LeaseStatus.Aside).
	Clock raft.Clock

	// ReadOnly says how reads are confirmed.
	ReadOnly raft.ReadOnlyOption
	// NoPreVote and NoCheckQuorum switch off what is on by default.
	NoPreVote, NoCheckQuorum bool

	// MaxCommandBytes bounds one command; 0 means 8 MiB.
	MaxCommandBytes int
	// MaxBatchBytes bounds the commands that share an entry, unless a single
	// one is larger; 0 means 256 KiB.
	MaxBatchBytes int
	// MaxQueueBytes bounds the commands that wait here or are under way. Commands beyond the
	// bound are refused with ErrOverloaded; 0 means 64 MiB.
	MaxQueueBytes int
	// MaxCalls bounds the calls under way; calls beyond the bound are refused with
	// ErrOverloaded. 0 means 65,536.
	MaxCalls int
	// Budget, unless nil, bounds the commands that wait over all groups that
	// share it, beside MaxQueueBytes.
	Budget *Budget
	// MaxBatches bounds the batches under way; 0 means 256.
	MaxBatches int

	// EagerBatches is how many batches may be under way before the next one
	// waits until it is full, one ends or a tick passes; 0 means 2. More costs processor time, fewer costs latency.
	EagerBatches int

	// MaxAppendBytes bounds the entries of one message; 0 means 1 MiB.
	MaxAppendBytes int
	// MaxInflightMsgs and MaxInflightBytes bound what is under way to one
	// follower; 0 means 256 and 32 MiB.
	MaxInflightMsgs  int
	MaxInflightBytes int
	// MaxUncommittedBytes bounds the leader's uncommitted entries; 0 means 128 MiB.
	MaxUncommittedBytes int
	// MaxApplyBytes bounds what the state machine is given before it reports;
	// 0 means 8 MiB.
	MaxApplyBytes int

	// MaxTurnBytes bounds the messages that leave in one turn, beside control messages;
	// messages beyond the bound are dropped. 0 means 512 MiB.
	MaxTurnBytes int

	// RetainEntries and RetainBytes say how much of the log is kept behind the
	// durable state, for followers that lag: the lesser of both. 0 means 100,000
	// and 64 MiB. For a follower that gets a snapshot a leader keeps what comes
	// behind that, up to 16 times as much, until the follower has it.
	RetainEntries uint64
	RetainBytes   uint64

	// MaxPromoteLag is how many entries a learner may lack when it is promoted;
	// 0 means 1,000.
	MaxPromoteLag uint64

	// Rand draws the election timeouts; nil means crypto/rand. Upstream's
	// library has a source of its own.
	Rand raft.Rand
	// Logger is the core's; nil means silence.
	Logger raft.Logger
}

// settings returns the configuration as the replica takes it.
func (c ReplicaConfig) settings() replica.Settings { return replica.Settings(c) }

// Validate returns an error that names every mistake, or nil. A field left at zero counts
// as its default.
func (c ReplicaConfig) Validate() error { return c.settings().Validate() }
