// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"
)

// A pendingCall is a call that has not ended. It ends once: with a result, with
// a verdict when its deadline passes, or with the replica.
type pendingCall struct {
	call     Call
	end      func(Done) // for a call of this module's own; nil: the driver hears of the end
	op       string
	deadline Deadline
	ended    bool
	// open says that the command may be in some log, or may get there: until both are ruled
	// out, a refusal is impossible.
	open bool
	// waiting says what for, if there is a leader.
	waiting string
	// sent is when a command left the queue for the first time, and committed when its
	// entry was known to be committed.
	sent, committed Deadline
}

// callList holds all calls under way, and perhaps some ended calls.
type callList struct {
	list []*pendingCall
	live int
	// cancelled are calls to end before their deadline. There may be many in a
	// turn, so they are looked for once.
	cancelled map[Call]error
	untidy    bool // calls have ended, perhaps before their commands left
}

// begin notes a call.
func (r *requests) begin(call Call, op string, deadline Deadline, waiting string) *pendingCall {
	c := &pendingCall{call: call, op: op, deadline: deadline, waiting: waiting}
	r.calls.list = append(r.calls.list, c)
	r.calls.live++
	return c
}

// refuseNow ends a call that was not let in.
func (r *requests) refuseNow(call Call, op string, cause error) {
	r.count.Refused++
	lead, _ := r.around.leader()
	r.around.callEnded(Done{Call: call, Err: &CallError{Op: op, Verdict: ErrRefused, Cause: cause, Leader: lead}})
}

// admits returns why a call cannot be let in, or nil.
func (r *requests) admits(deadline Deadline) error {
	switch {
	case deadline <= r.now:
		return fmt.Errorf("%w before the call began", ErrTimeout)
	case r.calls.live >= r.cfg.MaxCalls:
		return fmt.Errorf("%w: %d calls, the bound is %d; try again later", ErrOverloaded, r.calls.live, r.cfg.MaxCalls)
	}
	return nil
}

// finish ends a call with its result.
func (r *requests) finish(c *pendingCall, d Done) {
	if c.ended {
		return
	}
	c.ended = true
	r.calls.live--
	if d.Call = c.call; c.end != nil {
		c.end(d)
		return
	}
	r.around.callEnded(d)
}

// finishWith ends a call without a result. The verdict follows from where the
// call is.
func (r *requests) finishWith(c *pendingCall, cause error) {
	if c.ended {
		return
	}
	lead, _ := r.around.leader()
	e := &CallError{Op: c.op, Verdict: ErrRefused, Cause: cause, Waiting: c.waiting, Leader: lead}
	if c.open {
		e.Verdict = ErrUnknown
		r.count.Unknown++
	} else {
		r.count.Refused++
	}
	r.finish(c, Done{Err: e})
}

// live leaves out the ended calls.
func live(calls []*pendingCall) []*pendingCall {
	return slices.DeleteFunc(calls, func(c *pendingCall) bool { return c.ended })
}

// expireCalls ends the calls with a past deadline, and forgets all ended calls.
func (r *requests) expireCalls() {
	r.calls.list = slices.DeleteFunc(r.calls.list, func(c *pendingCall) bool {
		if !c.ended && c.deadline <= r.now {
			r.finishWith(c, r.around.timeout())
		}
		return c.ended
	})
	r.calls.untidy = true // a batch may have become known to be in no log
	r.tidy()
}

// Cancel ends a call before its deadline, in the next Flush, if it has not ended
// by then. A nil cause stands for a deadline that has passed.
func (r *requests) Cancel(call Call, cause error) {
	if r.calls.cancelled == nil {
		r.calls.cancelled = map[Call]error{}
	}
	r.calls.cancelled[call] = cause
}

func (r *requests) cancelCalls() {
	if len(r.calls.cancelled) == 0 {
		return
	}
	for _, c := range r.calls.list {
		cause, ok := r.calls.cancelled[c.call]
		if !ok || c.ended {
			continue
		}
		if cause == nil {
			cause = r.around.timeout()
		}
		r.finishWith(c, cause)
		r.calls.untidy = true
	}
	r.calls.cancelled = nil
	r.tidy()
}

func (r *requests) endAllCalls(cause error) {
	for _, c := range r.calls.list {
		r.finishWith(c, cause)
	}
	r.calls.list, r.calls.untidy = nil, true
	r.tidy()
}

// tidy lets go of what nobody waits for any more.
func (r *requests) tidy() {
	if !r.calls.untidy {
		return
	}
	r.calls.untidy = false
	r.outbox.forgetEnded()
	for _, b := range r.outbox.batches {
		r.withdraw(b)
	}
}
