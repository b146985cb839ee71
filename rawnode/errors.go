// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"

	"github.com/weftraft/weft/internal/replica"
)

// The verdicts on a call. Every error of [Host.Propose], [Host.Read] and similar calls is a
// [CallError] that wraps a verdict.
var (
	// ErrRefused says that the command has not been applied and never will be. The
	// caller may try again, here or elsewhere. A failed read is always refused.
	ErrRefused = replica.ErrRefused

	// ErrUnknown says that the command may have been applied, or may still be,
	// once. Trying again with a new call may apply it a second time.
	ErrUnknown = replica.ErrUnknown
)

// Causes that a [CallError] may wrap beside its verdict.
var (
	// ErrNoLeader says that no leader was known: this node is cut off from a
	// majority, or an election is going on. Try another node, or later.
	ErrNoLeader = replica.ErrNoLeader
	// ErrTimeout says that the deadline passed.
	ErrTimeout = replica.ErrTimeout
	// ErrOverloaded says that a queue is over its budget. Try again later.
	ErrOverloaded = replica.ErrOverloaded
	// ErrStalled says that this node's log or state machine has no room to write,
	// and wraps its reason. Another node may take the command.
	ErrStalled = replica.ErrStalled
	// ErrTooLarge says that a command is over the limit.
	ErrTooLarge = replica.ErrTooLarge
	// ErrStopped says that the host is stopping, or has stopped.
	ErrStopped = replica.ErrStopped
	// ErrConfChange says that a change of the member set was not accepted: the change is empty
	// (nil, or names no node), does not fit the present configuration, or another change is
	// under way.
	ErrConfChange = replica.ErrConfChange
	// ErrUnsafeChange says that the group might not go on behind a change of the member set:
	// too many of the remaining voters cannot be reached, or a new voter has not answered, or
	// not caught up. The error names these nodes.
	ErrUnsafeChange = replica.ErrUnsafeChange
	// ErrNotMember says that the named node is no member of the group, or a member not able to
	// do the request.
	ErrNotMember = replica.ErrNotMember
	// ErrSuperseded says that a later snapshot took the place of the entry that
	// held the command, so its result is not known here.
	ErrSuperseded = replica.ErrSuperseded
)

// Errors of hosts and replicas that are not about one call.
var (
	// ErrInvalid wraps mistakes in a configuration.
	ErrInvalid = replica.ErrInvalid
	// ErrState says that log and state machine do not fit together; nothing was changed. The
	// error gives the remedy.
	ErrState = replica.ErrState
	// ErrLogLost says that this node has acknowledged entries that its log lacks: the log, or
	// its directory, was lost, together with the node's votes. The node must not go on under
	// its id. The error gives the remedy.
	ErrLogLost = replica.ErrLogLost
	// ErrFirstMembers says that the group of this number began with other first members at
	// another node: their lists of Config.Peers differed. The error has both lists, and the
	// remedy.
	ErrFirstMembers = replica.ErrFirstMembers
	// ErrClock says that the system's clock cannot carry roster leases. The error gives the
	// reason and the remedy.
	ErrClock = errors.New("rawnode: the clock cannot carry roster leases")
	// ErrNotEnded says that a host was stopped, and something of it has not
	// returned: the state machine or the log is still in use. See [Host.Stop].
	ErrNotEnded = errors.New("rawnode: something of the host has not ended")
	// ErrFailed wraps what made a host give up: its log or its state machine
	// failed. Nothing has been acknowledged since.
	ErrFailed = replica.ErrFailed
)

// CallError is the error of a call that did not succeed. Its field Op names the method;
// Verdict is ErrRefused or ErrUnknown; Cause is the reason and never nil; Waiting says what
// the call was waiting for, or is empty; Leader is the leader that this node knows, or 0.
// The verdict and the cause are found by errors.Is.
type CallError = replica.CallError
