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
	// ErrRefused says that the command has not been applied and never will be. The caller may
	// repeat the call, at this node or another. A failed read is always refused.
	ErrRefused = replica.ErrRefused

	// ErrUnknown says that the command may have been applied, or may still be applied once. A
	// repetition as a new call may apply the command a second time.
	ErrUnknown = replica.ErrUnknown
)

// Causes that a [CallError] may wrap beside its verdict.
var (
	// ErrNoLeader says that no leader was known: this node is cut off from a majority, or an
	// election is under way. Try another node, or try later.
	ErrNoLeader = replica.ErrNoLeader
	// ErrTimeout says that the deadline passed.
	ErrTimeout = replica.ErrTimeout
	// ErrOverloaded says that a queue is over its budget, where the command alone would fit. Try again
	// later.
	ErrOverloaded = replica.ErrOverloaded
	// ErrStalled says that this node cannot write: its log or state machine has no room, or the
	// log's disk is late. The error wraps the reason, [storage.ErrFull] or [storage.ErrLate] for
	// the engine's logs. Another node may take the command, or the change of members; so neither waits.
	ErrStalled = replica.ErrStalled
	// ErrTooLarge says that a command, or a change of the member set, is over MaxCommandBytes, or a command over the whole
	// Budget of its group, and can never be taken. The error names the size and the bound. Split the command.
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
	// ErrSuperseded says that a later snapshot replaced the entry that held the command, so the
	// command's result is not known at this node.
	ErrSuperseded = replica.ErrSuperseded
	// ErrNoBytes says, at a gateway, that the command was applied, and that its result has no bytes: the
	// error gives the reason. See [ResultEncoder].
	ErrNoBytes = replica.ErrNoBytes
	// ErrQuery says that the state machine has answered a query with an error, whose text follows.
	ErrQuery = replica.ErrQuery
	// ErrNoQueries says that the state machine is no [Querier].
	ErrNoQueries = replica.ErrNoQueries
)

// Errors of hosts and replicas outside a call.
var (
	// ErrInvalid wraps mistakes in a configuration.
	ErrInvalid = replica.ErrInvalid
	// ErrState says that log and state machine do not fit together; nothing was changed. The error
	// gives the remedy.
	ErrState = replica.ErrState
	// ErrLogLost says that this node's log lacks entries that the node has acknowledged: the log,
	// or its directory, was lost, together with the node's votes. The node must not go on under the
	// same id. The error gives the remedy.
	ErrLogLost = replica.ErrLogLost
	// ErrFirstMembers says that another node began the group of this number with other first
	// members: the lists ReplicaConfig.Peers of the two nodes differ. The error has both lists, and the
	// remedy.
	ErrFirstMembers = replica.ErrFirstMembers
	// ErrSettings says that this node and another member have settings that do not fit each other. The
	// error names both nodes and both values. See [Status].Settings.
	ErrSettings = replica.ErrSettings
	// ErrClock says that the system's clock cannot carry roster leases. The error gives the
	// reason and the remedy.
	ErrClock = errors.New("rawnode: the clock cannot carry roster leases")
	// ErrNotEnded says that a call of the state machine or the log has not returned when a host was
	// stopped, or when the context of a call had ended: the state machine or the log is still in
	// use. The error names the part. See [Host.Stop].
	ErrNotEnded = errors.New("rawnode: something of the host has not ended")
	// ErrFailed wraps the failure of the log or the state machine that ended a host. The host has
	// acknowledged nothing since the failure.
	ErrFailed = replica.ErrFailed
)

// CallError is the error of a call that did not succeed. Field Op names the method; Verdict is
// ErrRefused or ErrUnknown; Cause is the reason and never nil; Waiting names the event for which
// the call waited, or is empty; Leader is the leader known to this node, or 0. errors.Is finds the
// verdict and the cause.
type CallError = replica.CallError
