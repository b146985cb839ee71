// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Engine is an open log directory. Its methods may be called from several
// goroutines.
type Engine struct {
	opts     Options
	recovery Recovery
	count    counters
	w        writer
	stopped  chan struct{} // closed when the writer's goroutine has ended
	stepping sync.Mutex    // with Options.Manual: one Step at a time
	close    sync.Once
	calling  int // of the writer: the number of callbacks in this batch

	// mu guards the fields below. Writes take effect in memory in the order of the
	// queue: appending to the queue holds mu from before the effect until after.
	mu          sync.Mutex
	work        sync.Cond // the queue has grown, or closing was set
	room        sync.Cond // the queue has shrunk, or refuse was set
	queue       []*request
	queuedBytes int64
	progress    progress
	refuse      error // why no more writes are taken: ErrFailed, ErrClosed
	closing     bool
	stall       stall
	marks       marking
	groups      map[uint64]*Group
	// segments are consecutive and ascending; the last is being written.
	segments []*segment
}

// Open opens the log in dir, and makes directory and log if there are none. One engine
// at a time has a directory: a second Open gets [ErrLocked]. A directory of another
// cluster or node is [ErrIdentity], of a newer format [ErrVersion], and a log without
// data once durable is a [DamageError]; after these errors nothing on disk is changed.
func Open(dir string, opts Options) (*Engine, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	d, err := openDirectory(dir, opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, groups: map[uint64]*Group{}, stopped: make(chan struct{})}
	e.work.L, e.room.L = &e.mu, &e.mu
	e.w = writer{e: e, dir: d, purger: purger{credit: opts.SegmentBytes}}
	e.w.out = gather{segmentBytes: opts.SegmentBytes, written: &e.count.writtenBytes}
	if err := e.recover(); err != nil {
		_ = e.closeFiles() // the first error is the one to report
		return nil, fmt.Errorf("storage: open %s: %w", dir, d.full(err))
	}
	if opts.Manual {
		close(e.stopped)
	} else {
		go e.run()
		if e.opts.Hung != nil {
			time.AfterFunc(e.opts.HungAfter, e.watch)
		}
	}
	return e, nil
}

// Group returns the group with an id, which may be any number. A group without writes
// is empty, and leaves no trace on disk.
func (e *Engine) Group(id uint64) (*Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		return nil, e.refuse
	}
	return e.groupLocked(id), nil
}

func (e *Engine) groupLocked(id uint64) *Group {
	g := e.groups[id]
	if g == nil {
		g = newGroup(e, id)
		e.groups[id] = g
	}
	return g
}

// Groups returns the ids of all groups, ascending: groups found by Open, and groups
// asked for since.
func (e *Engine) Groups() []uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]uint64, 0, len(e.groups))
	for id := range e.groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Recovery returns Open's findings.
func (e *Engine) Recovery() Recovery { return e.recovery }

// Err returns nil while the engine takes writes, and otherwise the reason: an error
// that wraps [ErrFailed], or [ErrClosed]. A full disk is no error: see [Group.Stalled].
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refuse
}

// Sync waits until everything queued before is durable.
func (e *Engine) Sync(ctx context.Context) error {
	return e.wait(ctx, request{})
}

// Stats returns the counters and gauges of the moment.
func (e *Engine) Stats() Stats {
	s := e.count.stats()
	s.CachedBytes = e.w.cache.bytes.Load()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Full = e.stall.reason != nil
	s.QueuedBytes, s.Waits = e.queuedBytes, e.waits()
	s.Groups = len(e.groups)
	s.Segments = len(e.segments)
	for _, seg := range e.segments {
		s.SegmentBytes += seg.size.Load()
		s.LiveBytes += seg.live.Load()
		s.FileBytes += seg.allocated.Load()
	}
	s.FileBytes += e.w.dir.spareBytes.Load()
	return s
}

// Close writes and syncs the queue, seals the log and releases the directory. Later
// writes get [ErrClosed]. Close returns the error of a failed engine, and [ErrFull] if
// there was no room for the whole queue: the callbacks got [ErrFull] too, and the log
// is as after a crash. A second call waits for the first to end, does nothing, and
// returns nil.
//
// Close waits for the disk, however long that takes: a Close that gave up would leave a goroutine
// that writes to the directory behind its lock. A caller with a bound calls Close in a goroutine and
// ends the process, as Node.Close of package weft allows.
func (e *Engine) Close() (err error) {
	e.close.Do(func() { err = e.closeNow() })
	return err
}

func (e *Engine) closeNow() error {
	e.mu.Lock()
	e.closing = true
	failed := e.refuse
	if failed == nil {
		e.refuse = ErrClosed
	}
	e.work.Broadcast()
	e.room.Broadcast()
	e.mu.Unlock()

	<-e.stopped
	if e.opts.Manual {
		e.stepping.Lock()
		defer e.stepping.Unlock()
		for e.round(false) {
		}
	}
	err := e.Err()
	if errors.Is(err, ErrClosed) {
		if err = e.giveUp(); err == nil && e.w.out.end() > emptyLen {
			err = e.w.seal()
		}
		if noSpace(err) && !errors.Is(err, ErrFull) {
			err = nil // no reader needs the seal: Open sets one
		}
	}
	return errors.Join(err, e.closeFiles())
}

// closed reports whether Close was called.
func (e *Engine) closed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing
}

func (e *Engine) closeFiles() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, s := range append(e.w.doomed, e.segments...) {
		errs = append(errs, s.close())
	}
	return errors.Join(append(errs, e.w.dir.close())...)
}
