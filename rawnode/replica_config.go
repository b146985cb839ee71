// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weftraft/weft/raft"
)

// ReplicaConfig configures a [Replica]. ID and Log must be set; every other
// field has a useful zero value. Sizes are in bytes.
type ReplicaConfig struct {
	// ID is this node's identity, in all groups; Group is that of the group.
	ID, Group uint64
	// Core is the library to drive: [Weft] (if nil) or [Upstream].
	Core NewCore
	// Log is the durable log of the group at this node.
	Log Log

	// Applied and HostState are what StateMachine.Load returned.
	Applied   uint64
	HostState []byte
	// Peers are the first voters of a new group, this node among them, and the
	// same at all of them; nodes whose lists differ take nothing from each other
	// (ErrFirstMembers). It is not looked at once the log has begun. A node
	// that joins a group later has none: it waits to be added.
	Peers []uint64
	// Boot tells the starts of this node apart: it must be larger at each. A
	// replica that learns that it is not corrects it.
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
	// is no clock for leases. It is read when an input is looked at. A [Host] with Leases
	// sets it to clock.Boottime.
	Clock raft.Clock

	// ReadOnly says how reads are confirmed.
	ReadOnly raft.ReadOnlyOption
	// NoPreVote and NoCheckQuorum switch off what is on by default.
	NoPreVote, NoCheckQuorum bool

	// MaxCommandBytes bounds one command; 0 means DefaultCommandBytes.
	MaxCommandBytes int
	// MaxBatchBytes bounds the commands that share an entry, unless a single
	// one is larger; 0 means DefaultBatchBytes.
	MaxBatchBytes int
	// MaxQueueBytes bounds the commands that wait here or are under way. Beyond
	// it they are refused with ErrOverloaded; 0 means DefaultQueueBytes.
	MaxQueueBytes int
	// MaxCalls bounds the calls that have not ended; beyond it they are refused
	// with ErrOverloaded. 0 means DefaultCalls.
	MaxCalls int
	// Budget, unless nil, bounds the commands that wait over all groups that
	// share it, beside MaxQueueBytes.
	Budget *Budget
	// MaxBatches bounds the batches under way; 0 means DefaultBatches.
	MaxBatches int

	// EagerBatches is how many batches may be under way before the next one
	// waits until it is full, one ends or a tick passes; 0 means
	// DefaultEagerBatches. More costs processor time, fewer costs latency.
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

	// Resolve and Bundle, unless nil, let messages travel in another form than
	// the core's. MaxUnresolvedBytes bounds the messages that wait to be
	// resolved; 0 means 32 MiB. MaxTurnBytes bounds what leaves in one turn,
	// beside control messages: what is beyond is dropped; 0 means 512 MiB.
	Resolve            Resolver
	Bundle             Bundler
	MaxUnresolvedBytes int
	MaxTurnBytes       int
	// Stopwatch, unless nil, measures the work of Resolve and Bundle.
	Stopwatch func() time.Duration

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

// Defaults of [ReplicaConfig].
const (
	DefaultCommandBytes = 8 << 20
	DefaultBatchBytes   = 256 << 10
	DefaultQueueBytes   = 64 << 20
	DefaultCalls        = 64 << 10
	DefaultBatches      = 256
	DefaultEagerBatches = 2
)

// maxCommandBytes is what fits an entry, a message and a frame with room to spare.
const maxCommandBytes = 48 << 20

// withDefaults fills in what zero stands for.
func (c ReplicaConfig) withDefaults() ReplicaConfig {
	if c.Core == nil {
		c.Core = Weft
	}
	if c.Logger == nil {
		c.Logger = discard{}
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.ElectionTick, 10}, {&c.HeartbeatTick, 1},
		{&c.MaxCommandBytes, DefaultCommandBytes}, {&c.MaxBatchBytes, DefaultBatchBytes},
		{&c.MaxQueueBytes, DefaultQueueBytes}, {&c.MaxCalls, DefaultCalls}, {&c.MaxBatches, DefaultBatches}, {&c.EagerBatches, DefaultEagerBatches},
		{&c.MaxAppendBytes, 1 << 20}, {&c.MaxInflightMsgs, 256}, {&c.MaxInflightBytes, 32 << 20},
		{&c.MaxUncommittedBytes, 128 << 20}, {&c.MaxApplyBytes, 8 << 20},
		{&c.MaxUnresolvedBytes, 32 << 20}, {&c.MaxTurnBytes, 512 << 20},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.RetainEntries == 0 {
		c.RetainEntries = 100_000
	}
	if c.MaxPromoteLag == 0 {
		c.MaxPromoteLag = 1000
	}
	if c.RetainBytes == 0 {
		c.RetainBytes = 64 << 20
	}
	return c
}

// Validate returns an error that names every mistake, or nil. What is left at
// zero counts as the default that it stands for.
func (c ReplicaConfig) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: %s is %v, want %s", ErrInvalid, field, value, want))
	}
	if c.ID == raft.None || c.ID >= raft.LocalApplyThread {
		bad("ID", c.ID, fmt.Sprintf("1 to %d", raft.LocalApplyThread-1))
	}
	if c.Log == nil {
		bad("Log", c.Log, "the group's log")
	}
	if c.HeartbeatTick < 1 {
		bad("HeartbeatTick", c.HeartbeatTick, "1 or more")
	}
	if c.ElectionTick <= c.HeartbeatTick {
		bad("ElectionTick", c.ElectionTick, fmt.Sprintf("more than HeartbeatTick (%d)", c.HeartbeatTick))
	}
	if c.ReadOnly == raft.ReadOnlyLeaseBased && c.NoCheckQuorum {
		bad("NoCheckQuorum", c.NoCheckQuorum, "false, as ReadOnly is ReadOnlyLeaseBased")
	}
	c.leaseMistakes(bad)
	if c.MaxCommandBytes < 1 || c.MaxCommandBytes > maxCommandBytes {
		bad("MaxCommandBytes", c.MaxCommandBytes, fmt.Sprintf("1 to %d", maxCommandBytes))
	}
	for _, f := range []struct {
		field string
		value int
		least int
	}{
		{"MaxBatchBytes", c.MaxBatchBytes, 1}, {"MaxQueueBytes", c.MaxQueueBytes, c.MaxCommandBytes},
		{"MaxCalls", c.MaxCalls, 1}, {"MaxBatches", c.MaxBatches, 1}, {"EagerBatches", c.EagerBatches, 1}, {"MaxAppendBytes", c.MaxAppendBytes, 1},
		{"MaxInflightMsgs", c.MaxInflightMsgs, 1}, {"MaxInflightBytes", c.MaxInflightBytes, c.MaxAppendBytes},
		{"MaxUncommittedBytes", c.MaxUncommittedBytes, 1}, {"MaxApplyBytes", c.MaxApplyBytes, 1},
		{"MaxUnresolvedBytes", c.MaxUnresolvedBytes, 1}, {"MaxTurnBytes", c.MaxTurnBytes, 1},
	} {
		if f.value < f.least || f.value > math.MaxInt32 {
			bad(f.field, f.value, fmt.Sprintf("%d to %d", f.least, math.MaxInt32))
		}
	}
	if c.MaxBatches > maxWindow {
		bad("MaxBatches", c.MaxBatches, fmt.Sprintf("1 to %d", maxWindow))
	}
	return errors.Join(append(errs, c.validatePeers()...)...)
}

func (c ReplicaConfig) validatePeers() (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: Peers %v "+format, append([]any{ErrInvalid, c.Peers}, args...)...))
	}
	if len(c.Peers) == 0 {
		return nil
	}
	if !slices.Contains(c.Peers, c.ID) {
		bad("lack this node, %d: name all first members, or none if the node joins a group", c.ID)
	}
	sorted := slices.Clone(c.Peers)
	slices.Sort(sorted)
	if slices.Contains(sorted, raft.None) {
		bad("contain 0, which is no node")
	}
	if len(slices.Compact(sorted)) < len(c.Peers) {
		bad("name a node twice")
	}
	return errs
}

// core returns the core's part of the configuration.
func (c ReplicaConfig) core(s raft.Storage) raft.Config {
	return raft.Config{
		ID: c.ID, Storage: s, Applied: c.Applied,
		ElectionTick: c.ElectionTick, HeartbeatTick: c.HeartbeatTick,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             uint64(c.MaxAppendBytes),
		MaxInflightMsgs:           c.MaxInflightMsgs,
		MaxInflightBytes:          uint64(c.MaxInflightBytes),
		MaxUncommittedEntriesSize: uint64(c.MaxUncommittedBytes),
		MaxCommittedSizePerReady:  uint64(c.MaxApplyBytes),
		PreVote:                   !c.NoPreVote, CheckQuorum: !c.NoCheckQuorum,
		ReadOnlyOption:            c.ReadOnly,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Rand:                      c.Rand,
		Logger:                    c.Logger,
	}
}
