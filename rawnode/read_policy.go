// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases"
)

// ReadOptions say what a read is to see, and of which keys. The zero value is a
// linearizable read of every key.
type ReadOptions struct {
	// Policy says how fresh the state has to be, and who vouches for that; nil is
	// [ReadIndex].
	Policy ReadPolicy
	// Spans are the keys that the read looks at; none: every key. With roster leases such
	// a read is answered here if this node is a responder of these keys, and does not
	// wait for writes of other keys. Without leases they have no effect. At most
	// [leases.MaxSpans].
	Spans []leases.Span
}

// key returns the spans as a comparable value, or what is wrong with them.
func (o ReadOptions) key() (string, error) {
	if len(o.Spans) == 0 {
		return "", nil
	}
	if len(o.Spans) > leases.MaxSpans {
		return "", fmt.Errorf("%w: ReadOptions.Spans has %d spans, want at most %d; none stands for every key", ErrInvalid, len(o.Spans), leases.MaxSpans)
	}
	b := leases.AppendSpans(nil, o.Spans)
	if _, err := leases.ParseSpans(b); err != nil {
		return "", fmt.Errorf("%w: ReadOptions.Spans are %v, want spans with a key, and bounds of at most %d bytes: %w", ErrInvalid, o.Spans, leases.MaxKey, err)
	}
	return string(b), nil
}

// ReadResult says what a read may rest on.
type ReadResult struct {
	// Index is that of the last entry that the read had to see.
	Index uint64
	// By says who vouched for it.
	By ServedBy
	// Lag is how many entries of the log the state lacked that are known to be
	// committed, and Age how long ago it had everything that was acknowledged by then. Both
	// are 0 unless By is ServedStale; Age is -1 if it is not known, which only
	// the policy Local allows.
	Lag uint64
	Age time.Duration
}

// ServedBy says who vouched for a read.
type ServedBy uint8

// What serves reads.
const (
	// ServedByLeader: the leader, which asked a majority whether it still leads, or
	// had a lease and was asked by another node.
	ServedByLeader ServedBy = iota
	// ServedByLease: this node, as the leader, by its lease.
	ServedByLease
	// ServedByRoster: this node, as a responder, by its leases. No message was sent.
	ServedByRoster
	// ServedByQuorum: a majority, which said where its logs end.
	ServedByQuorum
	// ServedStale: this node alone, as the policy allows an older state.
	ServedStale
	endOfServedBy
)

var servedNames = [endOfServedBy]string{"leader", "lease", "roster", "quorum", "stale"}

// String returns what served, in a word.
func (s ServedBy) String() string {
	if s < endOfServedBy {
		return servedNames[s]
	}
	return fmt.Sprintf("ServedBy(%d)", uint8(s))
}

// ReadPolicy says how fresh the state is that a read sees: [ReadIndex], [AtResponder],
// [LeaderLease], [QuorumRead], [BoundedStaleness] or [Local]. Whatever it is, a read
// waits for an index, and ends when this node's state machine has applied that.
type ReadPolicy interface {
	// known returns the index to wait for if that can be told without a round.
	known(v readView) (index uint64, ok bool)
	// slack is how many entries may be missing.
	slack() uint64
	// question is what is asked otherwise, about these keys.
	question(spans string) question
	// validate returns what is wrong with the policy.
	validate() error
}

// question is what a round asks for.
type question struct {
	route route
	spans string // encoded; empty: every key
}

// route is who is asked for the index of a read.
type route uint8

const (
	viaCore   route = iota // which asks the leader, unless this node has a lease
	viaLeader              // in any case
	viaQuorum
)

// readView is what policies look at.
type readView struct {
	now time.Duration
	// applied is what the state machine has applied.
	applied uint64
	// confirmed is the index of the last round for every key that ended, and askedAt is
	// when that began; false if there was none.
	confirmed uint64
	askedAt   time.Duration
	any       bool
}

// fresh is the part of policies that see everything acknowledged, and have to ask.
type fresh struct{}

func (fresh) known(readView) (uint64, bool)  { return 0, false }
func (fresh) slack() uint64                  { return 0 }
func (fresh) question(spans string) question { return question{viaCore, spans} }
func (fresh) validate() error                { return nil }

// ReadIndex is the policy for linearizable reads: everything that was
// acknowledged anywhere before the read is seen. The leader confirms it, by a
// round of heartbeats that serves all reads that wait, or by its lease if
// ReplicaConfig.ReadOnly says so. With ReplicaConfig.Leases it is the cheapest that
// is linearizable: see [AtResponder].
type ReadIndex struct{ fresh }

// AtResponder is the policy for linearizable reads that this node answers from its own
// state, without a message, if it is a responder of the keys by roster leases
// (ReplicaConfig.Leases), or leads and has its lease. Otherwise, and after a short wait
// (raft.Leases.Hold), the leader is asked. Where leases are off it is [ReadIndex].
type AtResponder struct{ fresh }

// LeaderLease is the policy for linearizable reads that the leader vouches for, also
// where this node is a responder. With ReplicaConfig.Leases the leader answers by its
// lease, and else by a round of heartbeats.
type LeaderLease struct{ fresh }

func (LeaderLease) question(spans string) question { return question{viaLeader, spans} }

// QuorumRead is the policy for linearizable reads that do without the leader: a majority
// of the voters says where its logs end, and the read waits until this node has applied
// the last of these entries. It needs no clock, and goes on while there is no leader, if
// nothing is under way. After half an election timeout the leader is asked, as for
// [ReadIndex]: an entry at the end of some log may never be committed.
type QuorumRead struct{ fresh }

func (QuorumRead) question(spans string) question { return question{viaQuorum, spans} }

// BoundedStaleness is the policy for reads that see everything that was
// acknowledged, anywhere, up to Max before the read, but for the last MaxEntries entries
// of the log. They cost no message if the
// leader has answered a read of this node that was asked at most Max ago, and
// else wait for a round as ReadIndex does: so there is one round in Max at most.
// The bound holds whatever messages take, as it counts from the question.
type BoundedStaleness struct {
	Max time.Duration // 0: no age, so each read needs a round, or a lease
	// MaxEntries is how many entries the state may lack of those that were committed at
	// that time; 0: none.
	MaxEntries uint64
}

func (p BoundedStaleness) known(v readView) (uint64, bool) {
	return v.confirmed, v.any && p.Max > 0 && v.now-v.askedAt <= p.Max
}

func (p BoundedStaleness) slack() uint64 { return p.MaxEntries }

// question asks for every key, because later reads rest on the answer.
func (BoundedStaleness) question(string) question { return question{} }

func (p BoundedStaleness) validate() error {
	if p.Max < 0 || p.Max == 0 && p.MaxEntries == 0 {
		return fmt.Errorf("%w: BoundedStaleness.Max is %v, want more than 0, or 0 and MaxEntries more than 0", ErrInvalid, p.Max)
	}
	return nil
}

// Local is the policy for reads of whatever this node has applied, however old.
type Local struct{ fresh }

func (Local) known(v readView) (uint64, bool) { return v.applied, true }
