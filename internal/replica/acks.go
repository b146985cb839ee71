// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import pb "go.etcd.io/raft/v3/raftpb"

// acks puts off acknowledgements that tell the leader nothing.
//
// A follower answers each append, also an append that only brings a commit index. With one
// client every second answer is of that kind, and each answer wakes two goroutines and the
// leader's loop. An answer with no news waits for the next answer with news, for the answer
// to a heartbeat, or for two ticks.
//
// No safety rests on the time of an answer. If the earlier answer was lost, the
// leader hears it some ticks later; if this node knows of the loss, at once.
type acks struct {
	to, term, index uint64 // said last
	waits           *pb.Message
	since           uint64 // tick
}

// put takes a message about to leave, and returns false if the message waits.
func (a *acks) put(m *pb.Message, tick uint64) bool {
	if m.GetType() != pb.MsgAppResp {
		return true
	}
	if m.GetReject() || m.GetTo() != a.to || m.GetTerm() != a.term || m.GetIndex() > a.index {
		*a = acks{to: m.GetTo(), term: m.GetTerm(), index: m.GetIndex()}
		if m.GetReject() {
			*a = acks{} // the leader goes back: all that follows is news
		}
		return true
	}
	if a.waits == nil {
		a.since = tick
	}
	a.waits = m
	return false
}

// take returns the waiting message, if its receiver is to.
func (a *acks) take(to uint64) *pb.Message {
	m := a.waits
	if m == nil || m.GetTo() != to {
		return nil
	}
	a.waits = nil
	return m
}

// late returns the message if its wait has lasted two ticks.
func (a *acks) late(tick uint64) *pb.Message {
	m := a.waits
	if m == nil || tick-a.since < 2 {
		return nil
	}
	a.waits = nil
	return m
}

// lost forgets the last answer to a peer: the answer may not have arrived.
func (a *acks) lost(peer uint64) {
	if a.to == peer {
		a.to = 0
	}
}
