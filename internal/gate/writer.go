// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"sync"
)

// Writer changes a database for a state machine. A host that ends must not wait for room
// on the disk; so Interrupt ends every wait, and Begin, for the next host, finds out about
// the change that the last host has left. Interrupt may be called by any goroutine, all
// else by the one that applies.
type Writer[S Store] struct {
	db   *Database[S]
	late <-chan error // of a change that was left; nil: none

	mu     sync.Mutex
	ended  chan struct{} // closed by Interrupt
	reason error         // set with it
}

// NewWriter returns a writer for a host that has not ended.
func NewWriter[S Store](db *Database[S]) *Writer[S] {
	return &Writer[S]{db: db, ended: make(chan struct{})}
}

// Interrupt says that the host has ended, and why. The first call counts.
func (w *Writer[S]) Interrupt(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason == nil {
		w.reason = fmt.Errorf("%w: %w", w.db.opts.Interrupted, reason)
		close(w.ended)
	}
}

// end returns a channel that is closed when the host has ended, and why it has.
func (w *Writer[S]) end() (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended, w.reason
}

// Begin begins with another host. It waits for a change that the last host has left, but
// not for room on the disk: without room it returns Full.
func (w *Writer[S]) Begin() error {
	w.mu.Lock()
	if w.reason != nil {
		w.ended, w.reason = make(chan struct{}), nil
	}
	w.mu.Unlock()
	if w.late == nil {
		return nil
	}
	select {
	case err := <-w.late: // the database has whatever became of the change
		if err != nil {
			w.db.opts.Logf("a change that the last host left: %v", err)
		}
		w.late = nil
		return nil
	case <-w.db.Fills():
		return fmt.Errorf("a change that the last host left waits: %w", w.db.opts.Full)
	case <-w.db.Dead():
		return w.db.Failure()
	}
}

// Ready waits until there is room. It returns why the host has ended if that comes first.
func (w *Writer[S]) Ready() error {
	ended, reason := w.end()
	if reason == nil {
		var room bool
		if room, reason = w.db.wait(ended); room || reason != nil {
			return reason
		}
		_, reason = w.end()
	}
	return reason
}

// Do runs a change, and waits with Pebble if Pebble has no memory for the change before
// there is room or time to flush. After an error of the gate or of the host the change may
// still happen: see Left. After either nothing is begun any more.
func (w *Writer[S]) Do(change func(S) error) error {
	ended, reason := w.end()
	if reason == nil {
		reason = w.db.Failure()
	}
	if reason != nil {
		return reason
	}
	done, err := w.db.run(change)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-w.db.Dead():
		w.late = done
		return w.db.Failure()
	case <-ended:
		w.late = done
		_, reason := w.end()
		return reason
	}
}

// Left reports whether a change is under way that Do has left.
func (w *Writer[S]) Left() bool { return w.late != nil }
