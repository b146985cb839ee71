// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

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

// next ends the wishes that came true, and returns the leader that is to be asked for now.
func (t *transfers) next(f *facts, finish func(*pendingCall, Done)) (to uint64, ok bool) {
	t.wanted = slices.DeleteFunc(t.wanted, func(w wantedLeader) bool {
		if w.to == f.state.Lead {
			finish(w.call, Done{})
		}
		return w.call.ended
	})
	if len(t.wanted) == 0 || f.state.Lead == raft.None || !t.due && f.ticks-t.sentAt < uint64(f.cfg.ElectionTick) {
		return 0, false
	}
	t.due, t.sentAt = false, f.ticks
	w := t.wanted[len(t.wanted)-1] // the latest wish counts
	w.call.open = true
	return w.to, true
}
