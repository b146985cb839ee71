// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// Replicated is a group whose state is a machine in memory: see [Replicate].
type Replicated[M state.Machine] struct {
	*Group
	memory *state.Memory[M]
}

// Replicate opens a group whose state is a machine in memory with three methods: apply a
// command, write the state, read it back. The rest is done here: checkpoints beside the log, snapshots,
// restarts. newMachine returns an empty machine. Closing the group or the node closes the
// state, too.
//
// A command proposed again after [ErrUnknown] may take effect twice, unless clients have [Sessions].
func Replicate[M state.Machine](n *Node, id uint64, newMachine func() M, options ...GroupOption) (*Replicated[M], error) {
	if n == nil {
		return nil, invalid.Errorf("the node is nil: look at the error of Open")
	}
	if n.options.Gateway {
		return nil, fmt.Errorf("%w; a gateway has no state, and opens the group with Node.Group", noReplica(n.options))
	}
	var memory *state.Memory[M]
	g, err := n.groupWith(id, func() (_ StateMachine, _ func() error, err error) {
		if memory, err = OpenMemory(n.options, id, newMachine, options...); err != nil {
			return nil, nil, err
		}
		return memory, memory.Close, nil
	}, options)
	if err != nil {
		return nil, err
	}
	return &Replicated[M]{Group: g, memory: memory}, nil
}

// OpenMemory opens the state that [Replicate] keeps in a node's directory, for [Restore] and
// [Recover], while the node is not open. Of the options only [Sessions] counts. The caller closes
// the state.
func OpenMemory[M state.Machine](o Options, group uint64, newMachine func() M, options ...GroupOption) (*state.Memory[M], error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if group == 0 {
		return nil, invalid.Errorf("the group's id is 0, want 1 or more")
	}
	if o.Gateway {
		return nil, noReplica(o)
	}
	if newMachine == nil {
		return nil, invalid.Errorf("newMachine of group %d is nil, want a function that returns an empty machine", group)
	}
	o = o.withDefaults()
	m, err := state.OpenMemory(newMachine, state.Options{
		Dir:      filepath.Join(o.Dir, fmt.Sprintf("state-%d", group)),
		Sessions: sessionsOf(options),
		Identity: fmt.Sprintf("cluster %d, node %d, group %d", o.Cluster, o.ID, group),
		Logf: func(format string, args ...any) {
			o.Logger.Info(fmt.Sprintf(format, args...), "node", o.ID, "group", group)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open the state of group %d: %w", group, err)
	}
	return m, nil
}

// View calls f with the state, as of no earlier than the call: everything that was
// acknowledged before, anywhere, is there, unless options ask for less. f must neither change
// the state nor keep a part of it.
func (r *Replicated[M]) View(ctx context.Context, f func(M), options ...ReadOption) error {
	if r == nil {
		return refused("read", invalid.Errorf("the group is nil: look at the error of Replicate"))
	}
	if f == nil {
		return refused("read", invalid.Errorf("the function that is to see the state is nil"))
	}
	if _, err := r.Read(ctx, options...); err != nil {
		return err
	}
	if err := r.memory.ViewContext(ctx, f); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = ErrTimeout
		}
		return refused("read", fmt.Errorf("%w: the state machine is busy, in Apply or with a checkpoint", err))
	}
	return nil
}

// changes wakes those that wait for a state to change.
type changes struct{ next atomic.Pointer[chan struct{}] }

// notify says that the state has changed.
func (c *changes) notify() {
	if waiting := c.next.Swap(nil); waiting != nil {
		close(*waiting)
	}
}

// channel returns a channel that is closed at the next change.
func (c *changes) channel() <-chan struct{} {
	for {
		if waiting := c.next.Load(); waiting != nil {
			return *waiting
		}
		fresh := make(chan struct{})
		if c.next.CompareAndSwap(nil, &fresh) {
			return fresh
		}
	}
}

// Wait returns as soon as until reports true of the state: now, as [Replicated.View] with the same
// options would see it, or after a later batch of commands. until is called at most once for each batch;
// it must neither change the state nor keep a part of it. An intermediate state may be
// missed if commands come faster than until returns.
//
// The error is that of a read, or wraps [ErrRefused] and ctx's cause once ctx has ended, or says that the group was
// closed or has failed, or that this node was removed.
func (r *Replicated[M]) Wait(ctx context.Context, until func(M) bool, options ...ReadOption) error {
	if r == nil {
		return refused("wait", invalid.Errorf("the group is nil: look at the error of Replicate"))
	}
	if until == nil {
		return refused("wait", invalid.Errorf("the function that is to see the state is nil"))
	}
	if _, err := r.Read(ctx, options...); err != nil {
		return err
	}
	for {
		changed, done := r.changes.channel(), false
		r.memory.View(func(m M) { done = until(m) })
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return refused("wait", fmt.Errorf("group %d: the state is not as wanted yet: %w", r.id, context.Cause(ctx)))
		case <-r.Done():
			if err := r.Err(); err != nil {
				return refused("wait", err)
			}
			return refused("wait", ErrStopped)
		}
	}
}

// Sessions gives a group of [Replicate] sessions of clients: a command that a client proposes again,
// because the first try ended in [ErrUnknown] or the connection broke, takes effect once, at whatever
// node. Each command of the group then has an envelope, also one outside any session: a client opens
// a session with state.OpenSession, whose result is the session's id, numbers its commands, puts
// each into state.InSession, and repeats these bytes until there is a result. Results of commands
// in sessions must be nil, bool, int, int64, uint64, or []byte or string of at most 1 MiB.
//
// All members must have the same limits, from the group's first command on. Members with other limits take
// nothing from each other ([ErrSettings]), and a state is not opened with other limits than before
// ([state.ErrLimits]).
func Sessions(limits session.Limits) GroupOption {
	return func(c *groupConfig) { c.sessions = &limits }
}

// sessionsOf returns the limits of sessions that options set, or nil.
func sessionsOf(options []GroupOption) *session.Limits {
	c := groupConfig{peek: true}
	for _, option := range options {
		if option != nil { // a nil option is refused when the group is opened
			option(&c)
		}
	}
	return c.sessions
}
