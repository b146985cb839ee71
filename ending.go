// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// endPatience is what the end of something may take, also when the context of a call has ended.
const endPatience = time.Second

// ending is an end that may hang, and is begun once. One goroutine at a time uses it.
type ending struct {
	done chan struct{} // nil: not begun
	err  error         // before done is closed, of the goroutine that ends
}

// await has end called, unless that is under way, and returns its error. An end that lasts for
// longer than ctx and endPatience goes on, and the error is [ErrNotEnded] and names what hangs.
func (e *ending) await(ctx context.Context, what string, end func() error) error {
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
	case <-time.After(endPatience):
		return fmt.Errorf("%w: %s: %w", ErrNotEnded, what, context.Cause(ctx))
	}
}

// ended reports whether the end has come.
func (e *ending) ended() bool {
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

// slowAfter is the time after which a wait without a bound is logged.
const slowAfter = 10 * time.Second

// timed logs a wait that has no bound, because what it waits for may rightly take long, once it has
// lasted for slowAfter, until done is called.
func timed(logger *slog.Logger, what string, args ...any) (done func()) {
	begun := time.Now()
	timer := time.AfterFunc(slowAfter, func() {
		logger.Warn(what+" has not ended: does the disk answer?", append(args, "for", slowAfter)...)
	})
	return func() {
		if !timer.Stop() {
			logger.Info(what+" has ended", append(args, "after", time.Since(begun).Round(time.Second))...)
		}
	}
}
