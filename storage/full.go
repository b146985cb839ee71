// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A full disk is not a failure. The file system refused before the engine promised
// anything, so the engine offers the same bytes again at the same place until accepted.
// Repeating is safe because no sync was tried in between: see DESIGN.md.
//
// The engine asks for room early: for the next segment when the present one is half
// written. The engine is full from the moment of a refusal. So hosts are told while
// there is room for work under way, and for purging. With this room used up too, the
// writer is stuck: nothing is written, nothing acknowledged.

// stall is why writes wait, or soon will.
type stall struct {
	reason error // wraps ErrFull; nil while there is room
	stuck  bool  // a write waits; otherwise only the room ahead is missing
	due    bool  // time to try again
}

// retryFull is the engine's pause before asking for room again.
const retryFull = 200 * time.Millisecond

// retry reports whether to ask the disk for more room now, and notes the attempt.
func (s *stall) retry(always bool) bool {
	now := s.reason == nil || s.due || always
	s.due = false
	return now
}

// failedSync is an error without a further attempt, whatever its cause, because a
// second sync may report success for data dropped by the first.
type failedSync struct{ error }

func (f failedSync) Unwrap() error { return f.error }

// noSpace reports whether err means a used-up disk or quota, after which the operation
// can be tried again.
func noSpace(err error) bool {
	if err == nil {
		return false
	}
	var sync failedSync
	return (vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT)) && !errors.As(err, &sync)
}

// full wraps err with ErrFull if err is about room.
func (d *directory) full(err error) error {
	if err == nil || !noSpace(err) {
		return err
	}
	return fmt.Errorf("%w: directory %s: %w; make room, nothing is lost that was reported durable", ErrFull, d.path, err)
}

// Stalled returns nil while writes proceed. Otherwise the disk is full: the error,
// which wraps [ErrFull], says where and why. Writes are still queued, up to
// [Options.QueueBytes] and then [ErrBusy], and become durable once the engine finds
// room, without a call by the host. A host should take on no new work until then.
func (g *Group) Stalled() error { return g.e.Stalled() }

// Stalled is [Group.Stalled], for all groups alike.
func (e *Engine) Stalled() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stall.reason
}

// full notes that there is no room, and when to ask again.
func (e *Engine) full(err error) {
	err = e.w.dir.full(err)
	e.mu.Lock()
	first := e.stall.reason == nil
	e.stall.reason, e.stall.stuck = err, len(e.w.batch) > 0
	e.progress.refused = time.Now()
	e.room.Broadcast() // nobody makes room in the queue
	e.mu.Unlock()
	if first {
		e.opts.Logf("%v", err)
	}
	if !e.opts.Manual {
		time.AfterFunc(retryFull, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.stall.due = true
			e.work.Signal()
		})
	}
}

// hasRoom notes that there is room again, or still.
func (e *Engine) hasRoom() {
	e.mu.Lock()
	was := e.stall.reason != nil
	e.stall = stall{}
	e.mu.Unlock()
	if was {
		e.opts.Logf("storage: directory %s: there is room again, writes go on", e.w.dir.path)
	}
}

// giveUp ends the wait for room in a closing engine.
func (e *Engine) giveUp() error {
	e.mu.Lock()
	if !e.stall.stuck {
		e.mu.Unlock()
		return nil
	}
	err := fmt.Errorf("%w: %w", ErrClosed, e.stall.reason)
	batch := append(e.w.batch[:len(e.w.batch):len(e.w.batch)], e.queue...)
	e.queue, e.w.batch, e.stall = nil, nil, stall{}
	e.mu.Unlock()
	e.finish(batch, err)
	return err
}
