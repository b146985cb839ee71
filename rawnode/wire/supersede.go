// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import pb "go.etcd.io/raft/v3/raftpb"

// Place is where in the log, and in which term, a MsgApp appends.
type Place struct {
	Term  uint64 // of the leader
	Index uint64 // of the entry in front
	Empty bool   // it has no entries, and only says what is committed
}

// PlaceOf returns the place of a MsgApp, and false for other messages.
func PlaceOf(m Message) (Place, bool) {
	r, ok := m.Body.(Raft)
	if !ok || r.GetType() != pb.MsgApp {
		return Place{}, false
	}
	return Place{Term: r.GetTerm(), Index: r.GetIndex(), Empty: len(r.Entries) == 0}, true
}

// Supersedes reports whether a MsgApp at p makes an earlier one at q, of the
// same group, that still waits for the same peer, pointless.
//
// A leader numbers the entries that it appends at a follower, and only goes back
// when it has reason to believe that something got lost. From there on it sends
// everything again. What still waits from that place on is a copy then, of
// entries that the newer message has, or that others behind it will have. On a
// link slower than the leader, copies would otherwise take most of it: the queue
// overflows, the leader goes back, and queues everything anew behind itself.
func (p Place) Supersedes(q Place) bool {
	return p.Term >= q.Term && p.Index <= q.Index && (!p.Empty || q.Empty)
}
