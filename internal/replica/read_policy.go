// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases"
)

// ReadOptions say how fresh a state a read is to see; rawnode.ReadOptions explains each
// field.
type ReadOptions struct {
	Policy ReadPolicy
	Spans  []leases.Span
}

// key returns the spans as a comparable value, or an error that names the faulty span.
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

// ReadResult is the ground of a read; rawnode.ReadResult explains each field.
type ReadResult struct {
	Index uint64
	By    ServedBy
	Lag   uint64
	Age   time.Duration
}

// ServedBy names the voucher of a read.
type ServedBy uint8

// The vouchers of reads; package rawnode explains each.
const (
	ServedByLeader ServedBy = iota
	ServedByLease
	ServedByRoster
	ServedByQuorum
	ServedStale
	endOfServedBy
)

var servedNames = [endOfServedBy]string{"leader", "lease", "roster", "quorum", "stale"}

// String returns the voucher, in a word.
func (s ServedBy) String() string {
	if s < endOfServedBy {
		return servedNames[s]
	}
	return fmt.Sprintf("ServedBy(%d)", uint8(s))
}

// ReadPolicy says how fresh the state is that a read sees: [ReadIndex], [AtResponder],
// [LeaderLease], [QuorumRead], [BoundedStaleness] or [Local]. Under each policy a read
// waits for an index, and ends when this node's state machine has applied the entry there.
type ReadPolicy interface {
	// known returns the index to wait for, if known without a round.
	known(v readView) (index uint64, ok bool)
	// slack is the number of entries that may be missing.
	slack() uint64
	// question is what is asked otherwise, about these keys.
	question(spans string) question
	// validate returns the policy's fault, or nil.
	validate() error
}

// question is the subject of a round.
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

// readView is the input of policies.
type readView struct {
	// applied is the index applied by the state machine.
	applied uint64
	// confirmed is the index of the last ended round for every key, askedAt the time of
	// its begin, and age how long ago that is; false if no round has ended.
	confirmed uint64
	askedAt   stamp
	age       time.Duration
	any       bool
}

// fresh is the part of policies that see everything acknowledged, and have to ask.
type fresh struct{}

func (fresh) known(readView) (uint64, bool)  { return 0, false }
func (fresh) slack() uint64                  { return 0 }
func (fresh) question(spans string) question { return question{viaCore, spans} }
func (fresh) validate() error                { return nil }

// ReadIndex is a policy; package rawnode says what for.
type ReadIndex struct{ fresh }

// AtResponder is a policy; package rawnode says what for.
type AtResponder struct{ fresh }

// LeaderLease is a policy; package rawnode says what for.
type LeaderLease struct{ fresh }

func (LeaderLease) question(spans string) question { return question{viaLeader, spans} }

// QuorumRead is a policy; package rawnode says what for.
type QuorumRead struct{ fresh }

func (QuorumRead) question(spans string) question { return question{viaQuorum, spans} }

// BoundedStaleness is a policy; package rawnode says what for.
type BoundedStaleness struct {
	Max time.Duration // 0: no age, so each read needs a round, or a lease
	// MaxEntries is how many entries the state may lack of those that were committed at
	// that time; 0: none.
	MaxEntries uint64
}

func (p BoundedStaleness) known(v readView) (uint64, bool) {
	return v.confirmed, v.any && p.Max > 0 && v.age <= p.Max
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

// Local is a policy; package rawnode says what for.
type Local struct{ fresh }

func (Local) known(v readView) (uint64, bool) { return v.applied, true }

// question is of every key, because such reads alone are answered without a round.
func (Local) question(string) question { return question{} }

// checkPolicy returns a policy's fault, or nil. A pointer to a policy has its methods, and may be nil.
func checkPolicy(p ReadPolicy) error {
	if PolicyName(p) == "other" {
		return fmt.Errorf("%w: the read policy is of type %T, want ReadIndex, AtResponder, LeaderLease, QuorumRead, BoundedStaleness or Local, and no pointer", ErrInvalid, p)
	}
	return p.validate()
}

// PolicyName returns what metrics and traces call a policy; nil is [ReadIndex].
func PolicyName(p ReadPolicy) string {
	switch p.(type) {
	case nil, ReadIndex:
		return "read_index"
	case AtResponder:
		return "at_responder"
	case LeaderLease:
		return "leader_lease"
	case QuorumRead:
		return "quorum_read"
	case BoundedStaleness:
		return "bounded_staleness"
	case Local:
		return "local"
	}
	return "other"
}
