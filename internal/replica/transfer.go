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

// next ends the wishes that came true, and returns the leader that is to be asked for now.
func (t *transfers) next(f *facts, finish func(*pendingCall, Done)) (to uint64, ok bool) {
	if len(t.wanted) == 0 || f.state.Lead == raft.None {
		return 0, false
	}
	t.wanted = slices.DeleteFunc(t.wanted, func(w wantedLeader) bool {
		if w.to == f.state.Lead {
			finish(w.call, Done{})
		}
		return w.call.ended
	})
	if len(t.wanted) == 0 || !t.due && f.ticks-t.sentAt < uint64(f.cfg.ElectionTick) {
		return 0, false
	}
	t.due, t.sentAt = false, f.ticks
	w := t.wanted[len(t.wanted)-1] // the latest wish counts
	w.call.open = true
	return w.to, true
}

// moveLeadership hands over as wished, or passes a wish on to the leader.
func (r *Replica) moveLeadership() {
	switch to, ok := r.moves.next(&r.facts, r.finish); {
	case !ok:
	case r.leads():
		r.count.HandOversAsked++
		r.transferTo(to)
	default:
		r.post(r.state.Lead, wire.Transfer{Term: r.state.Term, Transferee: to})
	}
}

// receiveTransfer takes a wish that another node passed on to the leader.
func (r *Replica) receiveTransfer(t wire.Transfer) {
	r.drain()
	if !r.leads() || t.Term != r.state.Term || !slices.Contains(r.host.conf.GetVoters(), t.Transferee) {
		return // it will be asked again, of whoever leads then
	}
	r.count.HandOversAsked++
	r.transferTo(t.Transferee)
}

// transferTo asks the core to hand leadership over.
func (r *Replica) transferTo(to uint64) {
	r.core.TransferLeader(to)
	r.dirty = true
}
