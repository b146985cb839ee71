// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
)

// request is an element of the queue.
type request struct {
	group *Group // nil for a request without a record
	// stage lets the request take effect in memory, under the locks of engine and
	// group, and returns the record to write.
	stage func() (*record, error)
	lazy  bool
	done  func(error)

	// Filled in on the way through the queue.
	record *record
	bytes  int64
	seg    *segment // where the record's frame is
	body   int64    // offset of its first entry there

	// internal marks the purger's own requests; purged, in such a request, is the
	// oldest segment needed from now on.
	internal bool
	purged   uint64
}

// requestBytes is a request's share of the queue's budget besides its entries.
const requestBytes = 128

// enqueue waits for room, lets r take effect and queues it.
func (e *Engine) enqueue(ctx context.Context, r request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.waitRoom(ctx); err != nil {
		return err
	}
	return e.push(&r)
}

// waitRoom waits, with e.mu held, until the queue takes another request.
func (e *Engine) waitRoom(ctx context.Context) error {
	stop := func() bool { return true }
	defer func() { stop() }()
	for waiting := false; ; waiting = true {
		switch {
		case e.refuse != nil:
			return e.refuse
		case e.queuedBytes < e.opts.QueueBytes:
			return nil
		case e.stall.stuck:
			return fmt.Errorf("%w: %d bytes, the bound is %d: %w", ErrBusy, e.queuedBytes, e.opts.QueueBytes, e.stall.reason)
		case e.opts.Manual:
			return fmt.Errorf("%w: %d bytes, the bound is %d; call Step", ErrBusy, e.queuedBytes, e.opts.QueueBytes)
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w: %d bytes, the bound is %d", ErrBusy, ctx.Err(), e.queuedBytes, e.opts.QueueBytes)
		}
		if !waiting && ctx.Done() != nil {
			stop = context.AfterFunc(ctx, func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.room.Broadcast()
			})
		}
		e.room.Wait()
	}
}

// push lets r take effect and queues it. The caller holds e.mu.
func (e *Engine) push(r *request) error {
	if r.stage != nil {
		r.group.mu.Lock()
		rec, err := r.stage()
		r.group.mu.Unlock()
		if err != nil {
			return err
		}
		r.group.waits++
		r.record, r.stage = rec, nil
		r.bytes = int64(rec.bodyLen() + proto.Size(rec.installed) + proto.Size(rec.recorded))
	}
	r.bytes += requestBytes
	if e.queuedBytes == 0 {
		e.progress.since = time.Now()
	}
	e.queue = append(e.queue, r)
	e.queuedBytes += r.bytes
	e.work.Signal()
	return nil
}

// wait queues r and waits until it is done.
func (e *Engine) wait(ctx context.Context, r request) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil, want context.Background() or one with a deadline", ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("storage: nothing was queued: %w", err)
	}
	done := make(chan error, 1)
	r.done = func(err error) { done <- err }
	if err := e.enqueue(ctx, r); err != nil {
		return err
	}
	for e.opts.Manual {
		ok, err := e.Step()
		if full := e.Stalled(); full != nil && !ok {
			return fmt.Errorf("storage: a write is queued and waits: %w", full)
		}
		if err != nil || !ok {
			break
		}
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("storage: waiting for a write to become durable, it may or may not: %w", ctx.Err())
	}
}

// take removes the next batch from the queue, unless an unfinished batch is left. With
// block take waits for a batch to write, for the time of a new attempt after a lack of
// room (retry is true then), or for the engine's closing.
func (e *Engine) take(block bool) (batch []*request, retry bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for block && (len(e.queue) == 0 && !e.marks.due || e.stall.stuck) && !e.closing && !e.stall.due {
		e.work.Wait()
	}
	retry = e.stall.retry(e.opts.Manual || e.closing)
	if e.stall.stuck {
		return nil, retry
	}
	n, bytes := 0, int64(0)
	for n < len(e.queue) && (n == 0 || bytes+e.queue[n].bytes <= e.opts.BatchBytes) {
		bytes += e.queue[n].bytes
		n++
	}
	batch = e.queue[:n:n]
	if e.queue = e.queue[n:]; len(e.queue) == 0 {
		e.queue = nil
	}
	return batch, retry
}

// run is the writer's goroutine. It ends with a round that began behind Close and found nothing to write: a write may have
// come during the round before.
func (e *Engine) run() {
	defer close(e.stopped)
	for closed := e.closed(); e.round(true) || !closed; closed = e.closed() {
	}
}

// Step writes one batch of the queue, and runs its callbacks. The result is false if
// the queue is empty, or the disk has no room; each Step tries again. Step is for
// [Options.Manual], and an error without.
func (e *Engine) Step() (bool, error) {
	if !e.opts.Manual {
		return false, fmt.Errorf("%w call of Step: the engine was opened without Options.Manual", ErrInvalid)
	}
	e.stepping.Lock()
	defer e.stepping.Unlock()
	any := e.round(false)
	if err := e.Err(); err != nil && !errors.Is(err, ErrClosed) {
		return any, err
	}
	return any, nil
}

// round writes one batch and reports whether it did.
func (e *Engine) round(block bool) bool {
	w := &e.w
	batch, retry := e.take(block)
	if len(w.batch) == 0 {
		w.batch = batch
	}
	if len(w.batch) == 0 && !e.toDo() {
		return false
	}
	wrote := false
	err := w.write()
	if err == nil {
		wrote = len(w.batch) > 0
		batch, w.batch, w.laid = w.batch, nil, 0
		e.finish(batch, nil)
		err = e.afterBatch(retry)
	}
	switch {
	case noSpace(err):
		e.full(err)
	case err != nil:
		e.fail(err, w.batch)
		w.batch = nil
	case retry:
		e.hasRoom()
	}
	return wrote
}

// afterBatch does the work no caller waits for.
func (e *Engine) afterBatch(retry bool) error {
	if e.timeToMark() {
		if err := e.w.mark(); err != nil {
			return err
		}
	}
	if retry {
		if err := e.w.removePurged(); err != nil {
			return err
		}
		if err := e.w.prepare(); err != nil {
			e.w.purge() // dead data may make room
			return err
		}
	}
	e.w.purge()
	return nil
}

// toDo reports whether there is something to do besides writing a batch.
func (e *Engine) toDo() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stall.reason != nil || e.marks.due
}

// marking is the time of the next mark: some time after the queue was found empty, so
// that a busy log has few marks.
type marking struct {
	waits bool // a timer runs, or due is set
	due   bool
}

// markAfter is how long after a batch its mark is written, at most.
const markAfter = 20 * time.Millisecond

// timeToMark reports whether a mark is due now, and otherwise schedules the next one.
func (e *Engine) timeToMark() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := &e.marks
	switch {
	case len(e.queue) > 0:
		return false
	case e.opts.Manual || e.closing || m.due:
		*m = marking{}
		return true
	case !m.waits:
		m.waits = true
		time.AfterFunc(markAfter, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			m.due = e.refuse == nil
			e.work.Signal()
		})
	}
	return false
}

// finish gives back the batch's room and runs its callbacks.
func (e *Engine) finish(batch []*request, err error) {
	e.mu.Lock()
	for _, r := range batch {
		e.queuedBytes -= r.bytes
		if r.group != nil {
			r.group.waits--
		}
	}
	e.progress.ended += uint64(len(batch))
	e.progress.since = time.Now()
	e.room.Broadcast()
	e.mu.Unlock()
	e.calling = len(batch)
	for _, r := range batch {
		if r.done != nil {
			r.done(err)
		}
	}
	e.calling = 0
	clear(batch) // the queue's array may live on, the entries need not
}

// fail ends the engine's service: the disk's contents are unknown, so neither this
// batch nor any later write may be called durable, now or later.
func (e *Engine) fail(err error, batch []*request) {
	err = fmt.Errorf("%w: %w; nothing is lost that was reported durable: mend the cause, close, and open again", ErrFailed, err)
	e.mu.Lock()
	e.refuse, e.stall, e.marks = err, stall{}, marking{waits: true}
	batch = append(batch[:len(batch):len(batch)], e.queue...)
	e.queue = nil
	e.mu.Unlock()
	e.opts.Logf("%v", err)
	e.finish(batch, err)
}
