// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weftraft/weft/internal/invalid"
)

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
