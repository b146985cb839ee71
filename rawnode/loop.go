// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// run is the loop: the goroutine that lets time pass for the replica, and takes
// the turns that nobody else takes. It never waits for a disk, a peer or the state
// machine: those have goroutines of their own, and answer through the inbox.
//
// A panic ends the process, and no call before: the verdicts of a replica halfway through a change
// mean nothing.
func (h *Host) run() {
	h.takeTurns()
	h.end(h.driver.replica)
}

// takeTurns returns when the host stops or the replica is out of service.
func (h *Host) takeTurns() {
	ticks, stop := newTicks(h.cfg.TickInterval, h.lookForHangs)
	defer stop()
	var between alarm
	defer between.stop()
	h.driver.take(h, func(*replica.Replica) {})
	for {
		at, due, ended := h.driver.next()
		if ended {
			return
		}
		select {
		case <-h.inbox.ready:
			h.driver.take(h, func(*replica.Replica) {})
		case due := <-ticks:
			h.driver.take(h, func(r *replica.Replica) { h.tick(r, due) })
		case <-between.arm(at, due, h.now()):
			between.rang()
			h.driver.take(h, func(r *replica.Replica) { r.Poll(h.now()) })
		case <-h.stopLoop:
			h.driver.end()
			return
		}
	}
}

// pollTicks is after how many ticks a state machine is asked how far it is
// durable, if it was not as far as it had applied.
const pollTicks = 10

// tick lets a tick pass that was due at a time. A process that gets little of a processor shows that
// here: its turns are short, and stand still between two of them.
func (h *Host) tick(r *replica.Replica, due time.Time) {
	h.ticks++
	r.Ticked(time.Since(due))
	h.local.Settle(r)
	r.Tick(h.now())
	h.lookForRoom(r)
	h.lookForAddresses(r)
	h.lookAtClock()
	h.fetched.tick()
	if h.ticks%pollTicks == 0 && h.polling.CompareAndSwap(true, false) {
		h.applies.put(applyJob{}, 0)
	}
	h.appends.reap()
	h.applies.reap()
}

// turn feeds the replica what has come in, and does what it wants done. It returns
// the memory of what came.
func (h *Host) turn(r *replica.Replica, spare []input) []input {
	start := time.Now()
	now := start.Sub(h.start)
	h.hangs.turn.begin(now)
	defer h.hangs.turn.end()
	r.At(now)
	items := h.inbox.take(spare, start)
	for i := range items {
		h.input(r, &items[i])
	}
	end := time.Now()
	waited := h.inbox.worked(end.Sub(start))
	h.flush(r, end.Sub(h.start))
	if len(items) > 0 && h.cfg.Replica.Placement != nil {
		r.Turned(waited, time.Since(start))
	}
	return items
}

// flush ends a turn of the replica.
//
// Invariant: readers see what the leases permit after the turn, before anything leaves that
// the replica wants sent, written, applied or answered. An acknowledgement of a write, the
// confirmation of a revocation, or a vote would otherwise be out while reads still rest on
// the state before it.
func (h *Host) flush(r *replica.Replica, now replica.Deadline) {
	out := r.Flush(now)
	h.local.Publish(r)
	h.dispatch(out)
}

func (h *Host) input(r *replica.Replica, in *input) {
	switch {
	case in.do != nil:
		in.do(r)
		return
	case in.append != nil:
		r.AppendDone(*in.append)
		return
	case in.applied != nil:
		r.ApplyDone(*in.applied.step, in.applied.results)
		return
	case in.call != nil:
		h.calls.put(in.call)
		in.call.begin(r)
		return
	case in.cancel != nil:
		if h.calls.has(in.cancel) {
			r.Cancel(in.cancel.id, in.cancel.cause)
		}
		return
	}
	switch b := in.msg.Body.(type) {
	case wire.Offer:
		h.fetched.offered(r, in.msg.From, b)
		return
	case wire.Fetch: // a question
		h.in.answer(in.msg.From, b.Stream, h.served.ask(r, in.msg.From, b))
		return
	}
	if err := r.Receive(in.msg); err != nil {
		h.log(slog.LevelWarn, in.msg.From, "message refused", "error", err)
	}
}

// dispatch gives the stages what the replica wants done.
func (h *Host) dispatch(out replica.Output) {
	if len(out.Sends) > 0 {
		h.cfg.Transport.Send(out.Sends)
	}
	for i := range out.Appends {
		h.append(&out.Appends[i])
	}
	for i := range out.Applies {
		a := &out.Applies[i]
		h.applies.put(applyJob{step: a}, commandsSize(a.Batch.Commands))
	}
	if out.Compact != nil {
		h.appends.put(logJob{compact: out.Compact}, 0)
	}
	for _, s := range out.Snapshots {
		h.out.start(s)
	}
	for _, q := range out.Queries {
		h.spawn(func() { h.answer(q) })
	}
	if len(out.Done) == 0 {
		return
	}
	now := h.now()
	for _, d := range out.Done {
		h.calls.end(d, now, h.cfg.Recorder)
	}
}

// append hands a write to the log: at once, if that need not wait and nothing
// waits before it, or else to the append stage.
func (h *Host) append(a *replica.Append) {
	if h.tryAppend == nil || !h.appends.empty() {
		h.appends.put(logJob{append: a}, a.Bytes())
		return
	}
	start := time.Now()
	err := h.tryAppend(a.Write, h.appended(a))
	switch {
	case errors.Is(err, storage.ErrBusy):
		h.appends.put(logJob{append: a}, a.Bytes())
	case err != nil:
		h.fail(fmt.Errorf("write the log: %w", err))
	default:
		h.appends.did(a.Bytes(), time.Since(start))
	}
}

// appended returns what follows when a write is durable.
func (h *Host) appended(a *replica.Append) func(error) {
	return func(err error) {
		if err != nil {
			h.fail(fmt.Errorf("write the log: %w", err))
			return
		}
		h.inbox.done(input{append: a})
		if h.logRests != nil && h.logRests() {
			h.driver.offer(h)
		} else {
			h.inbox.wake()
		}
	}
}

func commandsSize(commands [][]byte) (n int) {
	for _, c := range commands {
		n += len(c)
	}
	return n
}

// end lets everything go that waits for the replica.
func (h *Host) end(r *replica.Replica) {
	h.stopping.Store(true)
	h.local.Close()
	h.local.Settle(r)
	if err := r.Err(); err != nil {
		h.fail(err)
	}
	h.cfg.Transport.Leave(h.cfg.Replica.Group)
	for _, in := range h.inbox.close() {
		if in.do != nil || in.call != nil {
			h.input(r, &in)
		}
	}
	r.StopCalls()
	r.CatchUpWithin(nil, 0, nil)
	h.dispatch(replica.Output{Done: r.Flush(h.now()).Done})
	h.keep(Status(r.Status()), true)
	h.cancel()
	h.in.close()
	h.fetched.close()
	h.served.close()
	h.appends.close()
	h.applies.close()
	if sm, ok := h.cfg.StateMachine.(Interruptible); ok {
		sm.Interrupt(h.gone())
	}
}

// fail notes why the host cannot go on, and has the loop end. What goes wrong behind
// the end is of no interest: it was not acknowledged.
func (h *Host) fail(err error) {
	if h.context.Err() != nil {
		return
	}
	h.mu.Lock()
	first := h.err == nil
	h.local.Close()
	if first {
		h.err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	h.mu.Unlock()
	if first {
		h.cfg.Logger.Error("host failed", "node", h.cfg.Replica.ID, "group", h.cfg.Replica.Group, "error", err)
	}
	h.inbox.post(func(r *replica.Replica) { r.Fail(err) })
}

// logJob is work for the log: one of its fields.
type logJob struct {
	append  *replica.Append
	compact *replica.Compact
}

// writeLog is the append stage. Behind the host's end nothing is written: a write may have been left out for a lack of
// room, and must not be passed over. The next one can have a commit index that lies in it, with which no core starts.
func (h *Host) writeLog(job logJob) {
	if h.context.Err() != nil {
		return
	}
	if c := job.compact; c != nil {
		h.compactLog(c)
		return
	}
	err := h.untilRoom(func() error {
		h.hangs.write.begin(h.now())
		defer h.hangs.write.end()
		return h.cfg.Replica.Log.Append(job.append.Write, h.appended(job.append))
	})
	if err != nil {
		h.fail(fmt.Errorf("write the log: %w", err))
	}
}

// untilRoom queues something at the log, again and again while its queue is full
// because its disk is. A host that stops does not wait for that: what was not
// queued was not acknowledged.
func (h *Host) untilRoom(do func() error) error {
	for {
		err := do()
		if !errors.Is(err, storage.ErrBusy) {
			return err
		}
		select {
		case <-time.After(h.cfg.TickInterval):
		case <-h.context.Done():
			return nil
		}
	}
}

// lookForRoom tells the replica if there is no room to write, or room again, and logs when the
// replica begins or ends to stall, for that reason or another.
func (h *Host) lookForRoom(r *replica.Replica) {
	before := h.stalled
	h.stalled = r.Stalled(h.noRoom())
	if before == nil && h.stalled != nil {
		h.log(slog.LevelError, raft.None, "this node cannot write; no commands are taken here until it can", "error", h.stalled)
	} else if before != nil && h.stalled == nil {
		h.log(slog.LevelInfo, raft.None, "this node can write again")
	}
}

// noRoom returns why the log waits for room, or else the state machine, or nil.
func (h *Host) noRoom() error {
	for _, part := range []any{h.cfg.Replica.Log, h.cfg.StateMachine} {
		if p, ok := part.(interface{ Stalled() error }); ok {
			if err := p.Stalled(); err != nil {
				return err
			}
		}
	}
	return nil
}

// compactLog drops a part of the log. A snapshot that came from the leader in
// the meantime may have dropped more.
func (h *Host) compactLog(c *replica.Compact) {
	log := h.cfg.Replica.Log
	err := h.untilRoom(func() error { return log.SetSnapshot(c.Snapshot, nil) })
	if err == nil || errors.Is(err, raft.ErrSnapOutOfDate) {
		err = h.untilRoom(func() error { return log.Compact(c.Index) })
	}
	if err != nil && !errors.Is(err, raft.ErrCompacted) {
		h.fail(fmt.Errorf("compact the log to index %d: %w", c.Index, err))
	}
}

// applyJob is work for the state machine: one of its fields; or none, if it is
// only asked how far it is durable.
type applyJob struct {
	step    *replica.Apply
	restore *incoming
}

// advanceState is the apply stage. applied is the index of the state.
func (h *Host) advanceState(applied uint64) func(applyJob) {
	sm, durable := h.cfg.StateMachine, applied
	return func(job applyJob) {
		if h.Err() != nil || h.context.Err() != nil {
			return // what is not applied must not be passed over
		}
		var err error
		switch {
		case job.step != nil:
			applied, err = h.applyStep(job.step, applied)
		case job.restore != nil:
			applied = h.restore(job.restore, applied)
		}
		if err != nil {
			h.fail(err)
			return
		}
		h.hangs.apply.begin(h.now())
		index, err := sm.Durable()
		h.hangs.apply.end()
		if err != nil {
			h.fail(fmt.Errorf("ask the state machine how far it is durable: %w", err))
		} else if index > durable {
			durable = index
			h.inbox.post(func(r *replica.Replica) { r.Durable(index) })
		}
		h.polling.Store(durable < applied)
	}
}

// applyStep applies a step unless the state is beyond it, and returns the
// state's index.
func (h *Host) applyStep(a *replica.Apply, applied uint64) (uint64, error) {
	var results []any
	if a.Batch.Index > applied {
		var err error
		h.hangs.apply.begin(h.now())
		results, err = h.cfg.StateMachine.Apply(Batch(a.Batch))
		h.hangs.apply.end()
		if err != nil {
			return applied, fmt.Errorf("apply up to index %d: %w", a.Batch.Index, err)
		}
		if len(results) != len(a.Batch.Commands) {
			return applied, fmt.Errorf("the state machine returned %d results for %d commands", len(results), len(a.Batch.Commands))
		}
		applied = a.Batch.Index
		h.local.Applied(applied)
	}
	h.inbox.done(input{applied: &appliedStep{a, results}})
	h.driver.offer(h)
	return applied, nil
}
