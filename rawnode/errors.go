// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
)

// The verdicts on a call. Every error of [Host.Propose], [Host.Read] and the
// like is a [CallError] that wraps one of them.
var (
	// ErrRefused says that the command has not been applied and never will be.
	// It may be tried again, here or elsewhere. A read that failed is always
	// refused.
	ErrRefused = errors.New("refused, it has no effect")

	// ErrUnknown says that the command may have been applied, or may still be,
	// once. Trying again with a new call may apply it a second time.
	ErrUnknown = errors.New("outcome unknown, it may or may not take effect")
)

// Causes that a [CallError] may wrap beside its verdict.
var (
	// ErrNoLeader says that no leader was known: this node is cut off from a
	// majority, or an election is going on. Try another node, or later.
	ErrNoLeader = errors.New("no leader is known")
	// ErrTimeout says that the deadline passed.
	ErrTimeout = errors.New("the deadline passed")
	// ErrOverloaded says that a queue is over its budget. Try again later.
	ErrOverloaded = errors.New("too much is waiting")
	// ErrStalled says that this node's log or state machine has no room to write,
	// and wraps its reason. Another node may take the command.
	ErrStalled = errors.New("this node has no room to write")
	// ErrTooLarge says that a command is over the limit.
	ErrTooLarge = errors.New("the command is too large")
	// ErrStopped says that the host is stopping, or has stopped.
	ErrStopped = errors.New("the host is stopped")
	// ErrConfChange says that a change of the member set was not accepted: it says
	// nothing (it is nil, or names no node), it does not fit the present
	// configuration, or another is under way.
	ErrConfChange = errors.New("the configuration change was not accepted")
	// ErrUnsafeChange says that the group might not go on behind a change of the
	// member set: too many of the voters that it leaves cannot be reached, or a
	// new one has not answered, or not caught up. The error names them.
	ErrUnsafeChange = errors.New("the group might not go on after it")
	// ErrNotMember says that the node named is no member of the group, or not
	// one that can do what is asked.
	ErrNotMember = errors.New("no such member of the group")
	// ErrSuperseded says that a later snapshot took the place of the entry that
	// held the command, so its result is not known here.
	ErrSuperseded = errors.New("a snapshot passed over the result")
)

// Errors of hosts and replicas that are not about one call.
var (
	// ErrInvalid wraps mistakes in a configuration.
	ErrInvalid = errors.New("rawnode: invalid configuration")
	// ErrState says that log and state machine do not fit together; nothing was
	// changed. The error says what to do.
	ErrState = errors.New("rawnode: log and state machine do not fit together")
	// ErrLogLost says that this node has acknowledged entries that its log lacks: the
	// log, or its directory, was lost, and with it what the node has voted. It must
	// not go on under its id. The error says what to do.
	ErrLogLost = errors.New("rawnode: this node has lost its log")
	// ErrFirstMembers says that the group of this number began with other first
	// members at another node: their lists of ReplicaConfig.Peers differed. The error
	// has both, and says what to do.
	ErrFirstMembers = errors.New("rawnode: the group began with other first members elsewhere")
	// ErrClock says that the system's clock cannot carry roster leases. The error says
	// why, and what to do.
	ErrClock = errors.New("rawnode: the clock cannot carry roster leases")
	// ErrEntryFormat says that a committed entry cannot be read by this version.
	// The node stops rather than apply something else than others do.
	ErrEntryFormat = errors.New("rawnode: unreadable log entry")
	// ErrBadMessage wraps what is wrong with a message of a peer. It was
	// dropped and counted.
	ErrBadMessage = errors.New("rawnode: bad message")
	// ErrNotEnded says that a host was stopped, and something of it has not
	// returned: the state machine or the log is still in use. See [Host.Stop].
	ErrNotEnded = errors.New("rawnode: something of the host has not ended")
	// ErrFailed wraps what made a host give up: its log or its state machine
	// failed. Nothing has been acknowledged since.
	ErrFailed = errors.New("rawnode: the host has failed")
)

// CallError is the error of a call that did not succeed.
type CallError struct {
	Op      string // the method
	Verdict error  // ErrRefused or ErrUnknown
	Cause   error  // why; never nil
	Waiting string // what the call was waiting for, or empty
	Leader  uint64 // the leader that this node knows, or 0
}

// Error implements error.
func (e *CallError) Error() string {
	s := fmt.Sprintf("%s: %v: %v", e.Op, e.Verdict, e.Cause)
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
