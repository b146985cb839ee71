// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Identifiers reserved from members of a group.
const (
	// None stands for "no node": no leader, no vote, no transferee.
	None uint64 = 0
	// LocalAppendThread is the address of the host's log writer: the target of
	// MsgStorageAppend and the sender of the answers to it
	// ([Config.AsyncStorageWrites]).
	LocalAppendThread uint64 = math.MaxUint64
	// LocalApplyThread is the address of the host's state machine: the target
	// of MsgStorageApply and the sender of the answers to it
	// ([Config.AsyncStorageWrites]).
	LocalApplyThread uint64 = math.MaxUint64 - 1
)

const noLimit = math.MaxUint64

// ReadOnlyOption says how a leader confirms its leadership before answering a ReadIndex
// request.
type ReadOnlyOption int

const (
	// ReadOnlySafe asks a quorum, with one round of heartbeats (thesis 6.4). Safe with
	// any clocks. The default.
	ReadOnlySafe ReadOnlyOption = iota
	// ReadOnlyLeaseBased trusts that no other leader can have been elected since the
	// last check for a quorum. This option saves the round, needs [Config.CheckQuorum],
	// and is as unsafe as upstream's: a read may miss entries committed by another
	// leader. A leader that is cut off leads on for up to two of its election timeouts,
	// and the others may elect a leader after one of theirs, which is shorter in real
	// time if their ticks or their ElectionTick are: nobody compares these settings. The
	// same happens if clocks drift or processes pause, and with a voter after a restart,
	// or told to campaign in a transfer of leadership, which knows of no lease. Package
	// rawnode refuses this option. [Config.Leases] give the leader such reads safely.
	ReadOnlyLeaseBased
)

// Rand is a source of randomness for election timeouts. The Rand type of math/rand/v2
// implements Rand; a wrapper can add locking.
type Rand interface {
	// IntN returns a number drawn evenly from [0, n). n is at least 1.
	IntN(n int) int
}

// Clock tells monotonic time.
type Clock interface {
	// Now returns the time since an origin fixed while the process runs. Time in which
	// the machine was suspended must count.
	Now() time.Duration
}

// Pace holds back what a leader sends to members that catch up, so that a host of many groups can bound the bytes of
// all. The methods are called while the node works, and must call none of the node that changes it.
//
// Members that are held back still get heartbeats, and appends without entries. A group may commit nothing
// without a member that is held back; whether it can is for the Pace to know.
type Pace interface {
	// MaySend reports whether a member may be sent entries from index next on. After false, the leader asks again
	// when it hears from the member, when it commits, and when the host calls [RawNode.ResumeAppends].
	MaySend(to, next uint64) bool
	// Sent says that a member is being sent the entries from index first to last: so many bytes of payload, as
	// MaxInflightBytes counts them.
	Sent(to, first, last uint64, bytes int)
}

// Config holds the parameters of a node. The zero value is not valid: ID,
// ElectionTick, HeartbeatTick, Storage and MaxInflightMsgs must be set.
type Config struct {
	// ID is this node's identity in its group: not [None], and neither of the
	// local threads' addresses. An id is used once in a group: a member that was removed,
	// or has lost its log, comes back under another one, because the node does not know
	// what was voted, acknowledged and promised under the old id, and others may still count it.
	ID uint64

	// ElectionTick is the least number of ticks without a word from the leader
	// after which a follower campaigns; each wait is drawn from
	// [ElectionTick, 2*ElectionTick). It must exceed HeartbeatTick; ten times
	// as much is usual.
	ElectionTick int
	// HeartbeatTick is the number of ticks between a leader's heartbeats, at
	// least 1.
	HeartbeatTick int

	// Storage reads the host's writes: the log, the hard state and the latest snapshot,
	// also from before a restart.
	Storage Storage
	// Applied is the index up to which the host's state machine has applied the log
	// when it restarts; entries up to Applied are not handed out again. Zero means
	// unknown: all entries after the snapshot are handed out. Of changes of the members
	// the host's state, whose members Storage.InitialState returns, may then hold some, and
	// the host need not call ApplyConfChange for those; what was committed at the start it
	// puts into force before it reports it, as followers of etcd do.
	Applied uint64

	// AsyncStorageWrites turns writing and applying into messages. Ready then carries,
	// after all messages to peers, a MsgStorageAppend to [LocalAppendThread] (entries,
	// hard state and snapshot to write) and a MsgStorageApply to [LocalApplyThread]
	// (entries to apply), each with responses for the host to deliver once the entries
	// are durably written, or applied. Messages to one thread are handled in order; the
	// two threads need not wait for each other. Advance is not called.
	//
	// Responses are addressed like any message: some to this node, some to
	// peers. A MsgStorageAppend without responses need not be durable.
	AsyncStorageWrites bool

	// MaxSizePerMsg bounds the bytes of entries (as encoded) in one append message. A
	// message may always carry one entry of any size: 0 means one entry a message, and
	// math.MaxUint64 no bound.
	MaxSizePerMsg uint64
	// MaxCommittedSizePerReady bounds the bytes of committed entries (as encoded)
	// handed to the host and not yet reported as applied. While less is handed out, the
	// next entry may be, whatever its size. 0 means MaxSizePerMsg; set one of the two: if
	// both are 0, the node hands out nothing, or panics, as upstream's does.
	MaxCommittedSizePerReady uint64
	// MaxUncommittedEntriesSize bounds the payload bytes in the uncommitted
	// part of a leader's log; proposals beyond it are dropped with
	// [ErrProposalDropped]. 0 means no bound. A single proposal is always
	// accepted when nothing else is uncommitted.
	MaxUncommittedEntriesSize uint64
	// MaxInflightMsgs bounds the unacknowledged append messages to one follower. At
	// least 1.
	MaxInflightMsgs int
	// MaxInflightBytes bounds the payload bytes of the unacknowledged messages. 0 means
	// no bound; any other value must be at least MaxSizePerMsg. Throughput to a
	// follower cannot exceed MaxInflightBytes per round trip.
	MaxInflightBytes uint64

	// CheckQuorum makes a leader step down after an election timeout without word from
	// a quorum, and makes followers ignore candidates while their leader is heard from
	// (thesis 6.2).
	CheckQuorum bool

	// PreVote makes a node ask whether it could win before raising its term (thesis
	// 9.6), so that a node cut off for a while does not disturb the rest on return.
	PreVote bool

	// ReadOnlyOption says how ReadIndex requests are confirmed.
	// [ReadOnlyLeaseBased] requires CheckQuorum.
	ReadOnlyOption ReadOnlyOption

	// Logger receives the node's log lines. nil means the package's logger (see
	// [SetLogger]).
	Logger Logger

	// DisableProposalForwarding makes followers drop proposals with
	// [ErrProposalDropped] rather than pass them to the leader.
	DisableProposalForwarding bool

	// DisableConfChangeValidation lets a leader append configuration changes without
	// checking each change against the applied configuration. The check is best effort,
	// because the applied configuration may be older than the last one in the log.
	// Without the check the host must make every change fit the change before: applying
	// a change that does not fit panics. With Coding set a change waits until the
	// change before is applied, and until its new voters have reported that they read
	// coded entries, if the log may have coded entries; while a change waits, the
	// leader refuses others with [ErrProposalDropped].
	DisableConfChangeValidation bool

	// StepDownOnRemoval makes a leader step down on applying a configuration without a
	// vote for the leader.
	StepDownOnRemoval bool

	// TraceLogger is part of the API; nothing is traced in this build (see
	// [StateTraceDeployed]).
	TraceLogger TraceLogger

	// Rand draws the election timeouts. nil means crypto/rand. With a seeded
	// source a node is a function of its inputs.
	Rand Rand

	// Clock tells the time. nil means that the node knows no time but its ticks. Raft
	// itself needs no clock. Leases depend on the clock for safety. Coding measures
	// links and finds late entries with the clock; its safety does not depend on time.
	Clock Clock

	// MaxEarlyApplySize bounds the bytes, as encoded in the log, of committed entries that are handed
	// out for applying before this node's append thread has reported them as written. A majority has
	// stored these entries, so a leader whose disk is slow, or hangs, goes on answering clients. The
	// node keeps these entries in memory. An entry larger than the bound waits until it is
	// written. Needs AsyncStorageWrites, because otherwise writing and applying are one turn. Rules E3
	// and E4 in early.go say what the host must do at a restart, and must not drop from its log.
	// 0, as upstream: an entry is applied after it is written.
	MaxEarlyApplySize uint64

	// ConfChangesFirst says that the host calls ApplyConfChange for a configuration change
	// before it reports the change's entry as applied, by Advance or by the response of the
	// apply thread, so that a report without the call means that the host refused the change.
	// Only Coding and Leases look at it: otherwise a change is pending until ApplyConfChange,
	// whatever is reported, and no further change is appended before. A host that reports
	// first, as leaders of etcd do, refuses a change by ApplyConfChange with a change of
	// node 0, as etcd does, or calls it with the change.
	ConfChangesFirst bool

	// YieldWhenLate has a node go by its host's disk. If entries or a snapshot were handed
	// out to be written, and nothing was reported as written for more than ElectionTick
	// ticks, a leader drops proposals ([ErrProposalDropped]); if a majority has stored
	// more than the leader, it also hands leadership to the voter with the longest log, and
	// steps down if nobody has taken over after as many ticks. No late node campaigns.
	// Reports are the responses of the append thread with AsyncStorageWrites, and else
	// Advance. false, as upstream: a leader whose disk hangs leads until its uncommitted
	// entries reach their bound, and then accepts nothing.
	YieldWhenLate bool

	// Placement, unless nil, has leadership go to the members that are to lead rather than others.
	// Needs CheckQuorum. nil, as upstream: all members are alike.
	Placement *Placement

	// Pace, unless nil, says when a member that has missed entries is sent them; nil, as upstream: at once.
	Pace Pace

	// Coding turns coded replication on; nil leaves it off, and the node then
	// behaves as upstream's in every detail.
	Coding *Coding

	// Leases turns roster leases on; nil leaves them off, and the node then
	// behaves as upstream's in every detail.
	Leases *Leases
}

// Validate reports every mistake in the configuration, joined into one error. Each
// mistake names the field, its value and the broken bound. Every configuration of
// upstream's library is accepted.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("raft: Config."+format, args...))
		}
	}
	refuse(c.ID == None, "ID is 0, which stands for no node; use an id from 1 up")
	refuse(IsLocalMsgTarget(c.ID), "ID is %d, the address of a local storage thread; use an id below %d", c.ID, LocalApplyThread)
	refuse(c.HeartbeatTick <= 0, "HeartbeatTick is %d; at least 1 is needed", c.HeartbeatTick)
	refuse(c.ElectionTick <= c.HeartbeatTick, "ElectionTick is %d; it must exceed HeartbeatTick, which is %d", c.ElectionTick, c.HeartbeatTick)
	refuse(c.Storage == nil, "Storage is nil; pass what the host writes to, such as a MemoryStorage")
	refuse(c.MaxInflightMsgs <= 0, "MaxInflightMsgs is %d; at least 1 is needed", c.MaxInflightMsgs)
	refuse(c.MaxInflightBytes != 0 && c.MaxInflightBytes < c.MaxSizePerMsg,
		"MaxInflightBytes is %d; it must be 0 (no bound) or at least MaxSizePerMsg, which is %d", c.MaxInflightBytes, c.MaxSizePerMsg)
	refuse(c.ReadOnlyOption == ReadOnlyLeaseBased && !c.CheckQuorum,
		"ReadOnlyOption is ReadOnlyLeaseBased but CheckQuorum is false; a lease needs a leader that steps down without a quorum")
	refuse(c.MaxEarlyApplySize != 0 && !c.AsyncStorageWrites,
		"MaxEarlyApplySize is %d but AsyncStorageWrites is false; it must be 0 where writing and applying are one turn", c.MaxEarlyApplySize)
	if c.Placement != nil {
		c.Placement.mistakes(c, refuse)
	}
	if c.Coding != nil {
		c.Coding.mistakes(refuse)
	}
	if c.Leases != nil {
		c.Leases.mistakes(c, refuse)
	}
	return errors.Join(errs...)
}

// withDefaults returns a copy with the default in place of every value that stands for
// "not set".
func (c Config) withDefaults() Config {
	if c.MaxUncommittedEntriesSize == 0 {
		c.MaxUncommittedEntriesSize = noLimit
	}
	if c.MaxCommittedSizePerReady == 0 {
		c.MaxCommittedSizePerReady = c.MaxSizePerMsg
	}
	if c.MaxInflightBytes == 0 {
		c.MaxInflightBytes = noLimit
	}
	if c.Logger == nil {
		c.Logger = getLogger()
	}
	if c.Rand == nil {
		c.Rand = cryptoRand{}
	}
	c.Placement = c.Placement.copied()
	return c
}
