// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
)

// The verdicts on a call, their causes, and errors not about one call. Package rawnode has
// the same errors under the same names, and explains each error for a caller.
var (
	ErrRefused = errors.New("refused, it has no effect")
	ErrUnknown = errors.New("outcome unknown, it may or may not take effect")

	ErrNoLeader     = errors.New("no leader is known")
	ErrTimeout      = errors.New("the deadline passed")
	ErrOverloaded   = errors.New("too much is waiting")
	ErrStalled      = errors.New("this node cannot write, another one may")
	ErrTooLarge     = errors.New("the command is too large")
	ErrStopped      = errors.New("the host is stopped")
	ErrConfChange   = errors.New("the configuration change was not accepted")
	ErrUnsafeChange = errors.New("the group might not go on after it")
	ErrNotMember    = errors.New("no such member of the group")
	ErrSuperseded   = errors.New("a snapshot passed over the result")

	ErrNoBytes   = errors.New("the command was applied, and its result cannot be brought to a gateway; implement EncodeResult at the state machine")
	ErrQuery     = errors.New("the state machine answers with an error")
	ErrNoQueries = errors.New("the state machine takes no queries; implement rawnode.Querier, with weft.Replicate state.Querier, or set GroupOptions.Query of package pebblestate")

	ErrInvalid      = errors.New("rawnode: invalid configuration")
	ErrState        = errors.New("rawnode: log and state machine do not fit together")
	ErrLogLost      = errors.New("rawnode: this node has lost its log")
	ErrFirstMembers = errors.New("rawnode: the group began with other first members elsewhere")
	ErrSettings     = errors.New("rawnode: settings of members do not fit")
	ErrFailed       = errors.New("rawnode: the host has failed")
)

// Errors that callers see inside of others, if at all.
var (
	// errEntryFormat says that a committed entry cannot be read by this version.
	// The node stops rather than apply something else than others do.
	errEntryFormat = errors.New("rawnode: unreadable log entry")
	// ErrBadMessage wraps the fault of a peer's message. The message was dropped and counted.
	ErrBadMessage = errors.New("rawnode: bad message")
)

// The Op of reads.
const (
	opRead  = "read"
	opQuery = "query"
)

// CallError is the error of a call that did not succeed.
type CallError struct {
	Op      string // the method
	Verdict error  // ErrRefused or ErrUnknown
	Cause   error  // why; never nil
	Waiting string // what the call was waiting for, or empty
	Leader  uint64 // the leader known to this node, or 0
}

// Error implements error.
func (e *CallError) Error() string {
	verdict := e.Verdict.Error()
	if e.Op == opRead || e.Op == opQuery {
		verdict = "not answered" // a read has no effect in any case
	}
	s := fmt.Sprintf("%s: %s: %v", e.Op, verdict, e.Cause)
	if e.Waiting != "" {
		s += ", while waiting for " + e.Waiting
	}
	if e.Leader != 0 {
		s += fmt.Sprintf(" (leader: node %d)", e.Leader)
	}
	return s
}

// Unwrap returns the verdict and the cause.
func (e *CallError) Unwrap() []error { return []error{e.Verdict, e.Cause} }
