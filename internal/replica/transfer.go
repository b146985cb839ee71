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
	*calls
	transferTo func(to uint64)
	post       func(to uint64, body wire.Body)

	wanted []wantedLeader
	due    bool // the leader, or the wishes, are new
	sentAt uint64
}

type wantedLeader struct {
	to   uint64
	call *pendingCall
}

func (t *transfers) leaderChanged() { t.due = true }

// ask takes a wish of a user.
func (t *transfers) ask(call Call, to uint64, deadline Deadline) {
	const op = "transfer leader"
	err := t.admits(deadline)
	if !slices.Contains(t.host.conf.GetVoters(), to) {
		err = fmt.Errorf("%w: %d; the voters are %v", ErrNotMember, to, t.host.conf.GetVoters())
	}
	if err != nil {
		t.refuseNow(call, op, err)
		return
	}
	c := t.begin(call, op, deadline, fmt.Sprintf("node %d to become leader", to))
	t.wanted = append(t.wanted, wantedLeader{to, c})
	t.due = true
}

// move ends the wishes that came true, and hands over as wished, or passes the wish on to the leader.
func (t *transfers) move() {
	t.wanted = slices.DeleteFunc(t.wanted, func(w wantedLeader) bool {
		if w.to == t.state.Lead {
			t.finish(w.call, Done{})
		}
		return w.call.ended
	})
	if len(t.wanted) == 0 || t.state.Lead == raft.None || !t.due && t.ticks-t.sentAt < uint64(t.cfg.ElectionTick) {
		return
	}
	t.due, t.sentAt = false, t.ticks
	w := t.wanted[len(t.wanted)-1] // the latest wish counts
	w.call.open = true
	if t.leads() {
		t.handOver(w.to)
	} else {
		t.post(t.state.Lead, wire.Transfer{Term: t.state.Term, Transferee: w.to})
	}
}

// receive takes a wish that another node passed on to the leader.
func (t *transfers) receive(wish wire.Transfer) {
	if t.leads() && wish.Term == t.state.Term && slices.Contains(t.host.conf.GetVoters(), wish.Transferee) {
		t.handOver(wish.Transferee)
	} // else it will be asked again, of whoever leads then
}

func (t *transfers) handOver(to uint64) {
	t.count.HandOversAsked++
	t.transferTo(to)
}
