// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	"github.com/weftraft/weft/raft"
)

// A follower waits one to two election timeouts before it campaigns, as it
// cannot tell a dead leader from a slow one, nor what the others do. When a
// process dies its connections break, and those who were connected know more:
// they campaign as soon as members may vote against a silent leader, which is
// after one election timeout, and one after the other, so that votes are not
// split. (Two random waits end after 1.3 election timeouts in the median.)
//
// Nothing rests on it. A broken connection to a leader that lives brings no
// election, as the leader is heard of; and where nothing breaks, or the first in
// line has too short a log, the random wait ends as ever.
type succession struct {
	leader uint64 // to whom something was lost, while it led; 0 once tried
	at     uint64 // tick
}

// successionStep is how many ticks each follower waits for the one before it.
const successionStep = 2

// lost notes that something for a peer was dropped, or a connection broke.
func (r *Replica) lost(peer uint64) {
	if peer == r.state.Lead && peer != r.cfg.ID {
		r.heir = succession{leader: peer, at: r.ticks}
	}
}

// succeed campaigns if the leader is gone and it is this node's turn.
func (r *Replica) succeed() {
	gone := r.heir.leader
	if gone == 0 || gone != r.state.Lead || r.heard[gone] > r.heir.at {
		r.heir = succession{}
		return
	}
	voters := slices.Sorted(slices.Values(r.host.conf.GetVoters()))
	voters = slices.DeleteFunc(voters, func(id uint64) bool { return id == gone })
	turn := slices.Index(voters, r.cfg.ID)
	silence := r.ticks - r.heard[gone]
	if turn < 0 || silence <= uint64(r.cfg.ElectionTick+successionStep*turn) || r.state.Role != raft.StateFollower {
		return
	}
	r.heir = succession{}
	_ = r.Campaign() // the core's random wait goes on if it does not
}
