// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/internal/copies"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// Errors of nodes and groups. Each text names the field or the argument, its value, the
// bound, and the next step.
var (
	// ErrInvalid wraps mistakes in options and arguments. Nothing was changed. A mistake in a setting of a package below, by
	// Configure or in a read for example, wraps that package's ErrInvalid instead.
	ErrInvalid = invalid.Err
	// ErrClosed says that the node is closed, or is being closed. Calls of a closed group wrap [ErrStopped].
	ErrClosed = errors.New("weft: closed")
	// ErrOpen says that a group is open at this node already.
	ErrOpen = errors.New("weft: the group is open")
	// ErrRemoved says that a node was removed from the group, or given up by [Recover]. An id is
	// used once: a node that comes back gets another id and an empty directory.
	ErrRemoved = book.ErrRemoved
	// ErrAddress says that an address is not known, or is that of another node.
	ErrAddress = address.Err
	// ErrSnapshot says that a file is no snapshot of [Group.Snapshot], or is damaged or cut
	// off.
	ErrSnapshot = copies.ErrSnapshot
	// ErrUnfinished says that [Recover] was begun in a directory, and has neither ended nor been
	// taken back ([TakeBack]).
	ErrUnfinished = copies.ErrUnfinished
	// ErrMajority says that [Recover] is not allowed, because a majority of the members is
	// there, or may be.
	ErrMajority = copies.ErrMajority
	// ErrDiffers says that replicas of a group were compared and are not equal. A node whose state
	// differs from that of the majority is out of service, and so it is after a restart: see
	// [Comparable].
	ErrDiffers = compare.ErrDiffers
	// ErrBook says that the file with the addresses of members is damaged.
	ErrBook = book.ErrDamaged
)

// Errors of the packages below, under the names of this package. Each error of
// [Group.Propose], [Group.Read] and the changes of members wraps ErrRefused or ErrUnknown.
var (
	// ErrRefused: the call has no effect, now or later.
	ErrRefused = rawnode.ErrRefused
	// ErrUnknown: the call may have had its effect, or may still have the effect, once.
	ErrUnknown = rawnode.ErrUnknown
	// ErrNoLeader: this node knows no leader.
	ErrNoLeader = rawnode.ErrNoLeader
	// ErrTimeout: the deadline passed.
	ErrTimeout = rawnode.ErrTimeout
	// ErrOverloaded: a queue is over the budget.
	ErrOverloaded = rawnode.ErrOverloaded
	// ErrStalled: this node cannot write: its disk is full, or late. Commands and changes of members are refused at once, as
	// another node may take them.
	ErrStalled = rawnode.ErrStalled
	// ErrTooLarge: the command is over a bound, and can never be taken. The error names both.
	ErrTooLarge = rawnode.ErrTooLarge
	// ErrStopped: the group is closed, or was closed during the call.
	ErrStopped = rawnode.ErrStopped
	// ErrUnsafeChange: the group might not go on behind the change of members.
	ErrUnsafeChange = rawnode.ErrUnsafeChange
	// ErrConfChange: the change of members does not fit, or another is under way.
	ErrConfChange = rawnode.ErrConfChange
	// ErrNotMember: the node is no member, or not one that can do what is asked.
	ErrNotMember = rawnode.ErrNotMember
	// ErrFailed: log or state machine failed, and the group has ended here.
	ErrFailed = rawnode.ErrFailed
	// ErrNotEnded: the state machine or the log did not return, and is still in use.
	ErrNotEnded = rawnode.ErrNotEnded
	// ErrState: log and state machine do not fit together.
	ErrState = rawnode.ErrState
	// ErrFirstMembers: the group began with other first members at another node.
	ErrFirstMembers = rawnode.ErrFirstMembers
	// ErrSettings: this node and another member have settings that do not fit, such as [Sessions]. It is
	// in the errors of calls that time out, and in the Settings of [rawnode.Status].
	ErrSettings = rawnode.ErrSettings
	// ErrLogLost: this node has acknowledged entries that its log lacks.
	ErrLogLost = rawnode.ErrLogLost
	// ErrLocked: another process, or another Node of this process, has the directory.
	ErrLocked = storage.ErrLocked
	// ErrIdentity: the directory belongs to another cluster or node.
	ErrIdentity = storage.ErrIdentity
)

// refused returns the error of a call that this package does not pass on.
func refused(op string, cause error) error {
	return &rawnode.CallError{Op: op, Verdict: ErrRefused, Cause: cause}
}

// checkContext returns an error for a nil context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return invalid.Errorf("the context is nil, want context.Background() or one with a deadline")
	}
	return nil
}

// causeOf returns why a context has ended.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, cause)
	}
	return cause
}

// usable returns why nothing can be asked of the group.
func (g *Group) usable(ctx context.Context) error {
	if g == nil {
		return invalid.Errorf("the group is nil: look at the error of Node.Group")
	}
	return checkContext(ctx)
}

// replicated returns why nothing can be asked of a replica here.
func (g *Group) replicated(ctx context.Context) error {
	err := g.usable(ctx)
	if err == nil && g.gateway != nil {
		err = noReplica(g.node.options)
	}
	return err
}

// member returns why calls that a member answers are refused.
func (g *Group) member(ctx context.Context) error {
	if err := g.replicated(ctx); err != nil {
		return err
	}
	if g.out.Load() {
		return g.removedError()
	}
	return nil
}

func (g *Group) removedError() error {
	return fmt.Errorf("%w: node %d, group %d, which goes on without the node: ask a member; a read with the option Local sees what this node had", ErrRemoved, g.node.options.ID, g.id)
}
