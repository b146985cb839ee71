// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import pb "go.etcd.io/raft/v3/raftpb"

// acks puts off acknowledgements that tell the leader nothing.
//
// A follower answers each append, also one that only brings a commit index. With
// one client that is every second answer, and each wakes two goroutines and the
// leader's loop. One that says what this node has said before waits for the next
// that says more, for the answer to a heartbeat, or for two ticks.
//
// No safety rests on when an answer comes. If the earlier answer was lost, the
// leader hears it some ticks later; if this node knows of the loss, at once.
type acks struct {
	to, term, index uint64 // said last
	waits           *pb.Message
	since           uint64 // tick
}

// put takes a message that is about to leave. It returns false if it waits.
func (a *acks) put(m *pb.Message, tick uint64) bool {
	if m.GetType() != pb.MsgAppResp {
		return true
	}
	if m.GetReject() || m.GetTo() != a.to || m.GetTerm() != a.term || m.GetIndex() > a.index {
		*a = acks{to: m.GetTo(), term: m.GetTerm(), index: m.GetIndex()}
		if m.GetReject() {
			*a = acks{} // the leader goes back: what follows is news to it
		}
		return true
	}
	if a.waits == nil {
		a.since = tick
	}
	a.waits = m
	return false
}

// take returns what waits, if it is for that peer.
func (a *acks) take(to uint64) *pb.Message {
	m := a.waits
	if m == nil || m.GetTo() != to {
		return nil
	}
	a.waits = nil
	return m
}

// late returns what has waited for long.
func (a *acks) late(tick uint64) *pb.Message {
	m := a.waits
	if m == nil || tick-a.since < 2 {
		return nil
	}
	a.waits = nil
	return m
}

// lost forgets what a peer has been told: some of it may not have arrived.
func (a *acks) lost(peer uint64) {
	if a.to == peer {
		a.to = 0
	}
}
