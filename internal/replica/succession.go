// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	"github.com/weftraft/weft/internal/placement"
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
	*facts
	placing *placing

	leader uint64 // a message to this leader was lost while it led; 0 once tried
	at     uint64 // tick
}

// successionStep is the wait of each follower for the follower before, in ticks.
const successionStep = placement.TurnStep

// lost notes a dropped message or a broken connection to a peer.
func (s *succession) lost(peer uint64) {
	if peer == s.state.Lead && peer != s.cfg.ID {
		s.leader, s.at = peer, s.ticks
	}
}

// due reports whether the leader is gone and it is this node's turn to campaign.
func (s *succession) due() bool {
	gone := s.leader
	if gone == 0 || gone != s.state.Lead || s.heard[gone] > s.at {
		s.leader = 0
		return false
	}
	voters := slices.Sorted(slices.Values(s.host.conf.GetVoters()))
	voters = slices.DeleteFunc(voters, func(id uint64) bool { return id == gone })
	s.placing.byWeight(voters)
	turn := slices.Index(voters, s.cfg.ID)
	silence := s.ticks - s.heard[gone]
	if turn < 0 || silence <= uint64(s.cfg.ElectionTick+successionStep*turn) || s.state.Role != raft.StateFollower {
		return false
	}
	s.leader = 0
	return true
}
