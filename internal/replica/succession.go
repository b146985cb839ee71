// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	"github.com/weftraft/weft/raft"
)

// A follower waits one to two election timeouts before campaigning, because a follower
// cannot tell a dead leader from a slow leader, and does not know the others' timers. When
// a process dies its connections break, and the connected followers know more: they
// campaign as soon as members may vote against a silent leader, after one election timeout,
// and one after the other, so that votes are not split. (Two random waits end after 1.3
// election timeouts in the median.)
//
// No safety rests on succession. A broken connection to a live leader brings no election,
// because followers hear of the leader; and where nothing breaks, or the first in line has
// too short a log, the random wait ends as usual.
type succession struct {
	leader uint64 // a message to this leader was lost while it led; 0 once tried
	at     uint64 // tick
}

// successionStep is the wait of each follower for the follower before, in ticks.
const successionStep = 2

// lost notes a dropped message or a broken connection to a peer.
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
	r.byWeight(voters)
	turn := slices.Index(voters, r.cfg.ID)
	silence := r.ticks - r.heard[gone]
	if turn < 0 || silence <= uint64(r.cfg.ElectionTick+successionStep*turn) || r.state.Role != raft.StateFollower {
		return
	}
	r.heir = succession{}
	_ = r.Campaign() // the core's random wait goes on if it does not
}
