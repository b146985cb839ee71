// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"context"
	"fmt"
	"time"

	"github.com/weftraft/weft/rawnode"
)

// TakeTurn waits until no other Close is under way. A free turn counts more than a context that has
// ended.
func TakeTurn(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: another Close is under way: %w", rawnode.ErrNotEnded, context.Cause(ctx))
	}
}

// Patience is what the end of something may take, also when the context of a call has ended.
const Patience = time.Second

// Ending is an end that may hang, and is begun once. One goroutine at a time uses it.
type Ending struct {
	done chan struct{} // nil: not begun
	err  error         // before done is closed, of the goroutine that ends
}

// Await has end called, unless that is under way, and returns its error. An end that lasts for
// longer than ctx and Patience goes on, and the error is [rawnode.ErrNotEnded] and names what hangs.
func (e *Ending) Await(ctx context.Context, what string, end func() error) error {
	if e.done == nil {
		e.done = make(chan struct{})
		go func() {
			defer close(e.done)
			e.err = end()
		}()
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
	}
	select {
	case <-e.done:
		return e.err
	case <-time.After(Patience):
		return fmt.Errorf("%w: %s: %w", rawnode.ErrNotEnded, what, context.Cause(ctx))
	}
}

// Ended reports whether the end has come.
func (e *Ending) Ended() bool {
	if e.done == nil {
		return false
	}
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
