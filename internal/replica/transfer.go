// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// transfers are wishes for a leader that have not come true.
type transfers struct {
	wanted []wantedLeader
	due    bool // the leader, or the wishes, are new
	sentAt uint64
}

type wantedLeader struct {
	to   uint64
	call *pendingCall
}

func (t *transfers) leaderChanged() { t.due = true }

// TransferLeader asks for a voter to become leader. The call ends when the voter leads. A
// failed transfer leaves the old leader; so a call that timed out may have moved leadership
// or not.
func (r *Replica) TransferLeader(call Call, to uint64, deadline Deadline) {
	const op = "transfer leader"
	err := r.admits(deadline)
	if !slices.Contains(r.host.conf.GetVoters(), to) {
		err = fmt.Errorf("%w: %d; the voters are %v", ErrNotMember, to, r.host.conf.GetVoters())
	}
	if err != nil {
		r.refuseNow(call, op, err)
		return
	}
	c := r.begin(call, op, deadline, fmt.Sprintf("node %d to become leader", to))
	r.moves.wanted = append(r.moves.wanted, wantedLeader{to, c})
	r.moves.due = true
}

// moveLeadership ends the wishes that came true and passes on the others.
func (r *Replica) moveLeadership() {
	t := &r.moves
	if len(t.wanted) == 0 || r.state.Lead == raft.None {
		return
	}
	t.wanted = slices.DeleteFunc(t.wanted, func(w wantedLeader) bool {
		if w.to == r.state.Lead {
			r.finish(w.call, Done{})
		}
		return w.call.ended
	})
	if len(t.wanted) == 0 || !t.due && r.ticks-t.sentAt < uint64(r.cfg.ElectionTick) {
		return
	}
	t.due, t.sentAt = false, r.ticks
	w := t.wanted[len(t.wanted)-1] // the latest wish counts
	w.call.open = true
	if r.leads() {
		r.count.HandOversAsked++
		r.core.TransferLeader(w.to)
		r.dirty = true
		return
	}
	r.post(r.state.Lead, wire.Transfer{Term: r.state.Term, Transferee: w.to})
}

// receiveTransfer takes a wish that another node passed on to the leader.
func (r *Replica) receiveTransfer(t wire.Transfer) {
	r.drain()
	if !r.leads() || t.Term != r.state.Term || !slices.Contains(r.host.conf.GetVoters(), t.Transferee) {
		return // it will be asked again, of whoever leads then
	}
	r.count.HandOversAsked++
	r.core.TransferLeader(t.Transferee)
	r.dirty = true
}
