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
	since    uint64 // tick
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

// appliedCall is a call whose command is in a step of the state machine.
type appliedCall struct {
	*pendingCall
	index  uint64 // of the entry
	result int    // which of the step's results, or -1
	value  any    // the result if result is -1
}

// calls are the calls of users of a [Replica] or a [Gateway]. A call is in one of these states:
//
//  1. refused at once (refuseNow): it never is in the list;
//  2. under way, and its command is in no log;
//  3. under way and open: its command may be in some log, or may get there;
//  4. ended: with a result (finish), or without (finishWith): refused if the call was not open, and
//     else with an unknown outcome.
//
// Invariant: live is the number of calls in list that have not ended. An ended call never counts again, because
// finish does nothing to it.
type calls struct {
	*facts
	around aroundCalls

	list []*pendingCall // those under way, and until the next tick some that have ended
	live int
	// cancelled are calls that end before their deadline. One pass over list ends all cancelled calls of a turn,
	// because there may be many.
	cancelled map[Call]error
}

// aroundCalls is what calls need of what is around them.
type aroundCalls interface {
	// leader returns the leader known here, or 0, and the term in which it leads.
	leader() (id, term uint64)
	// timeout returns the cause for a call whose deadline passed now.
	timeout() error
	// callEnded takes the end of a call.
	callEnded(Done)
}

// begin notes a call.
func (c *calls) begin(call Call, op string, deadline Deadline, waiting string) *pendingCall {
	p := &pendingCall{call: call, op: op, deadline: deadline, since: c.ticks, waiting: waiting}
	c.list = append(c.list, p)
	c.live++
	return p
}

// refuseNow ends a call that was not let in.
func (c *calls) refuseNow(call Call, op string, cause error) {
	c.count.Refused++
	lead, _ := c.around.leader()
	c.around.callEnded(Done{Call: call, Err: &CallError{Op: op, Verdict: ErrRefused, Cause: cause, Leader: lead}})
}

// admits returns why a call cannot be let in, or nil.
func (c *calls) admits(deadline Deadline) error {
	switch {
	case deadline <= c.now:
		return fmt.Errorf("%w before the call began", ErrTimeout)
	case c.live >= c.cfg.MaxCalls:
		return fmt.Errorf("%w: %d calls, the bound is %d; try again later", ErrOverloaded, c.live, c.cfg.MaxCalls)
	}
	return nil
}

// finish ends a call with its result.
func (c *calls) finish(p *pendingCall, d Done) {
	if p.ended {
		return
	}
	p.ended = true
	c.live--
	if d.Call = p.call; p.end != nil {
		p.end(d)
		return
	}
	c.around.callEnded(d)
}

// finishWith ends a call without a result. The verdict follows from the state of the call.
func (c *calls) finishWith(p *pendingCall, cause error) {
	if p.ended {
		return
	}
	lead, _ := c.around.leader()
	e := &CallError{Op: p.op, Verdict: ErrRefused, Cause: cause, Waiting: p.waiting, Leader: lead}
	if p.open {
		e.Verdict = ErrUnknown
		c.count.Unknown++
	} else {
		c.count.Refused++
	}
	c.finish(p, Done{Err: e})
}

// expire ends the calls with a past deadline, and forgets all ended calls.
func (c *calls) expire() {
	c.list = slices.DeleteFunc(c.list, func(p *pendingCall) bool {
		if !p.ended && p.deadline <= c.now {
			c.finishWith(p, c.around.timeout())
		}
		return p.ended
	})
}

// Cancel ends a call before its deadline, in the next Flush, if it has not ended
// by then. A nil cause stands for a deadline that has passed.
func (c *calls) Cancel(call Call, cause error) {
	if c.cancelled == nil {
		c.cancelled = map[Call]error{}
	}
	c.cancelled[call] = cause
}

// cancel ends the calls that were cancelled, and reports whether any had not ended.
func (c *calls) cancel() (some bool) {
	if len(c.cancelled) == 0 {
		return false
	}
	for _, p := range c.list {
		cause, ok := c.cancelled[p.call]
		if !ok || p.ended || p.end != nil { // a call of this module's own has no number
			continue
		}
		if cause == nil {
			cause = c.around.timeout()
		}
		c.finishWith(p, cause)
		some = true
	}
	c.cancelled = nil
	return some
}

// endAll ends all calls.
func (c *calls) endAll(cause error) {
	for _, p := range c.list {
		c.finishWith(p, cause)
	}
	c.list = nil
}

// live leaves out the ended calls.
func live(calls []*pendingCall) []*pendingCall {
	return slices.DeleteFunc(calls, func(c *pendingCall) bool { return c.ended })
}

func allEnded(calls []*pendingCall) bool {
	return !slices.ContainsFunc(calls, func(c *pendingCall) bool { return !c.ended })
}
