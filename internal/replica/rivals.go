// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// rivals keep two members from splitting the votes again and again.
//
// Members whose processes began together tick together. When their leader falls silent, two of them draw the same wait in
// one of ten elections of ten ticks. Both then get all pre-votes and vote for themselves, and the votes of three members
// are split if the third is dead, or mute. Each such round takes one to two election timeouts, and the next one may end
// in the same way.
//
//   - A member that is asked for a pre-vote by a node with as long a log lets this node go first: it begins no campaign of its
//     own for a few ticks, in which the other one has won, or cannot win.
//   - Of two members that ask each other, the one with the larger id waits as long: the pre-votes that it gets in
//     this time do not count, and then it asks anew.
//
// No safety rests on rivals: a pre-vote that does not count is one that was lost. And no member holds others up for
// long, whatever it sends: a wait ends at a tick, before the next message can begin another one, and a member yields
// once in a term.
type rivals struct {
	*facts
	waitTo    uint64 // tick up to which this member lets another one go first
	yields    bool   // this member has asked for pre-votes itself, and the answers do not count
	yieldedIn uint64 // term in which it yielded last
}

// asked notes that another node asks for pre-votes.
func (v *rivals) asked(m *pb.Message) {
	if m.GetIndex() < v.last {
		return // most probably nobody with this log votes for it
	}
	if v.ticks >= v.waitTo {
		v.waitTo = v.ticks + uint64(max(2, v.cfg.ElectionTick/4+1))
	}
	if s := v.core.State(); s.Role == raft.StatePreCandidate && m.GetFrom() < v.cfg.ID && s.Term != v.yieldedIn {
		v.yields, v.yieldedIn = true, s.Term
		v.count.Yields++
	}
}

// wait reports whether the core must not begin a campaign at this tick. A core that hears a leader begins none anyway.
func (v *rivals) wait() bool {
	return v.ticks < v.waitTo && !v.leads() && (v.state.Lead == raft.None || v.ticks-v.heard[v.state.Lead] >= uint64(v.cfg.ElectionTick))
}

// again reports whether this member is to ask for pre-votes anew, because the rival has not won.
func (v *rivals) again() bool {
	if !v.yields || v.ticks < v.waitTo {
		return false
	}
	v.yields = false
	return v.state.Role == raft.StatePreCandidate && v.state.Term == v.yieldedIn
}
