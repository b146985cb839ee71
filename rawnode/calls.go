// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
)

// hostCall is a call of a user on its way through a host: from the user's goroutine to the loop,
// and back with the outcome. The memory is used again for later calls.
//
// Invariant: each call that the inbox has taken ends exactly once.
type hostCall struct {
	op       callOp
	command  []byte
	read     ReadOptions
	change   *pb.ConfChangeV2
	to       uint64
	begun    replica.Deadline // when the user called
	deadline replica.Deadline
	ended    chan callEnd // has room for one end
	timer    *time.Timer  // nil before the first use
	id       replica.Call // given by the loop
	cause    error        // why the context has ended, or nil; of inbox.cancel
}

// callEnd is the outcome of a call and, for a command that was applied, the times of its phases.
type callEnd struct {
	replica.Done
	times CommandTimes
}

// callOp is the kind of a call.
type callOp uint8

const (
	opPropose callOp = iota
	opRead
	opChange
	opForce
	opTransfer
)

var callOps = [...]string{"propose", "read", "propose configuration change", "propose configuration change", "transfer leader"}

// begin hands the call to the replica.
func (c *hostCall) begin(r *replica.Replica) {
	switch c.op {
	case opPropose:
		r.Propose(c.id, c.command, c.deadline)
	case opRead:
		r.ReadWith(c.id, replica.ReadOptions(c.read), c.deadline)
	case opChange:
		r.ProposeConfChange(c.id, c.change, c.deadline)
	case opForce:
		r.ForceConfChange(c.id, c.change, c.deadline)
	case opTransfer:
		r.TransferLeader(c.id, c.to, c.deadline)
	}
}

// call has the replica do something and waits for its end.
func (h *Host) call(ctx context.Context, op callOp, set func(*hostCall)) (callEnd, error) {
	if err := ended(ctx); err != nil {
		return callEnd{}, &CallError{Op: callOps[op], Verdict: ErrRefused, Cause: err}
	}
	c, _ := h.spareCalls.Get().(*hostCall)
	if c == nil {
		c = &hostCall{ended: make(chan callEnd, 1)}
	}
	*c = hostCall{op: op, ended: c.ended, timer: c.timer}
	set(c)
	c.begun = h.now()
	c.deadline = deadline(ctx, c.begun, h.cfg.DefaultTimeout)
	if err := h.enter(c); err != nil {
		h.spareCalls.Put(c)
		return callEnd{}, &CallError{Op: callOps[op], Verdict: ErrRefused, Cause: err}
	}
	d, again := h.await(ctx, c)
	if again {
		h.spareCalls.Put(c)
	}
	return d, d.Err
}

// farOff bounds how far ahead a deadline is: an operand that is larger says no more, and would overflow sums.
const farOff = 100 * 365 * 24 * time.Hour

// deadline returns the deadline of a call that begins now, in the replica's time. A context may have its deadline from the
// wall clock, which may have been set since the start: what counts is the time that is left.
func deadline(ctx context.Context, now replica.Deadline, otherwise time.Duration) replica.Deadline {
	left := otherwise
	if at, ok := ctx.Deadline(); ok {
		left = time.Until(at)
	}
	return now + min(left, farOff)
}

// ended returns why a call with a context cannot begin, or nil.
func ended(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w before the call began", ErrTimeout)
	}
	return cause
}

var errNoContext = fmt.Errorf("%w: the context is nil, want context.Background() or one with a deadline", ErrInvalid)

// enter hands a call to the loop, or returns why not.
func (h *Host) enter(c *hostCall) error {
	if h.stopping.Load() {
		return h.gone()
	}
	err := h.inbox.call(c)
	if errors.Is(err, ErrStopped) {
		return h.gone()
	}
	if err == nil {
		// The caller takes no turn: a turn may read the log, and a disk that hangs would keep the
		// caller beyond its context.
		h.inbox.wake()
	}
	return err
}

// await waits until a call has ended, and reports whether the memory of the call may be used again.
// The wait is over, at the latest, cutGrace after the end of the context or, without a deadline, of
// Config.DefaultTimeout.
func (h *Host) await(ctx context.Context, c *hostCall) (d callEnd, again bool) {
	var late <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		late = c.patience(c.deadline + cutGrace - h.now())
		defer c.timer.Stop()
	}
	select {
	case d := <-c.ended:
		return d, true
	case <-ctx.Done():
	case <-late:
		return h.abandon(c, ErrTimeout), false
	}
	// The replica knows the state of the call, and answers Cancel in its next turn.
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		cause = nil
	}
	h.inbox.cancel(c, cause)
	select {
	case d := <-c.ended:
		return d, false
	case <-c.patience(cutGrace):
		return h.abandon(c, cmp.Or(cause, ErrTimeout)), false
	}
}

// patience returns a channel on which the timer of a call rings.
func (c *hostCall) patience(d time.Duration) <-chan time.Time {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	return c.timer.C
}

// abandon ends a call in place of the replica, whose turn does not end.
func (h *Host) abandon(c *hostCall, cause error) callEnd {
	verdict := ErrUnknown
	if h.inbox.withdraw(c) || c.op == opRead {
		verdict = ErrRefused
	}
	err := fmt.Errorf("%w: %w: %s", cause, ErrNotEnded, loopName)
	return callEnd{Done: replica.Done{Err: &CallError{Op: callOps[c.op], Verdict: verdict, Cause: err}}}
}

// callTable finds the calls that the replica has not ended; only the loop uses the table. A
// replica.Call is a place in the table, and a place is free again when its call has ended. The
// replica reports each end once.
type callTable struct {
	calls []*hostCall
	free  []replica.Call
}

// put gives a call its id.
func (t *callTable) put(c *hostCall) {
	if n := len(t.free); n > 0 {
		c.id, t.free = t.free[n-1], t.free[:n-1]
		t.calls[c.id] = c
		return
	}
	c.id = replica.Call(len(t.calls))
	t.calls = append(t.calls, c)
}

// has reports whether a call has not ended.
func (t *callTable) has(c *hostCall) bool {
	return c.id < replica.Call(len(t.calls)) && t.calls[c.id] == c
}

// end lets a caller go, after a word to the recorder.
func (t *callTable) end(d replica.Done, now replica.Deadline, recorder Recorder) {
	if d.Call >= replica.Call(len(t.calls)) || t.calls[d.Call] == nil {
		return // the host's own
	}
	c := t.calls[d.Call]
	t.calls[d.Call] = nil
	t.free = append(t.free, d.Call)
	e := callEnd{Done: d}
	if d.Err == nil && c.op == opPropose {
		e.times = commandTimes(d, c.begun, now)
	}
	if d.Err == nil && recorder != nil {
		c.record(e, now, recorder)
	}
	c.ended <- e
}

// noCall is the id of the host's own calls, for which nobody waits.
const noCall = ^replica.Call(0)

// now is the replica's time.
func (h *Host) now() replica.Deadline { return time.Since(h.start) }
