// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"

	"github.com/weftraft/weft/internal/wire"
)

// ReadWith takes a read of a user. The read ends when this node's state machine has applied
// the index given by the policy; the user then reads the state machine. Done.Read names the
// ground of the read.
func (r *Replica) ReadWith(call Call, o ReadOptions, deadline Deadline) {
	r.count.Reads++
	if o.Policy == nil {
		o.Policy = ReadIndex{}
	}
	w, err := r.newRead(o, deadline)
	if err != nil {
		r.refuseNow(call, opRead, err)
		return
	}
	w.call = r.begin(call, opRead, deadline, waitRead)
	r.reads.await(w, o.Policy.question(w.spans))
}

// waitRead is what reads wait for first.
const waitRead = "the leader to confirm the read"

// newRead returns a read without its call, or why there can be none.
func (r *Replica) newRead(o ReadOptions, deadline Deadline) (waitingRead, error) {
	spans, bad := o.key()
	err := cmp.Or(r.admits(deadline), checkPolicy(o.Policy), bad)
	return waitingRead{policy: o.Policy, spans: spans, begun: r.ticks}, err
}

// receiveLogEnd answers a question, or takes an answer.
func (r *Replica) receiveLogEnd(from uint64, m wire.LogEnd) {
	switch {
	case !m.Answer:
		r.audience.asks(from)
		r.drain() // an append in this turn may have made the log longer
		if r.last > 0 && r.losses.own.heartbeats == 0 && r.err == nil {
			m.Answer, m.Index, m.First = true, r.last, r.founding.digest
			r.post(from, m)
		} // else this node has lost its log, or has never had one
	case m.Boot == r.reads.boot && m.Number&inquiryBit != 0:
		r.changes.inquiries.answered(from, m.Number)
	default:
		r.reads.ended(from, m)
	}
}
