// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import pb "go.etcd.io/raft/v3/raftpb"

// Place is where in the log, and in which term, a MsgApp appends.
type Place struct {
	Term  uint64 // of the leader
	Index uint64 // of the entry in front
	Empty bool   // no entries, only a commit index
}

// PlaceOf returns the place of a MsgApp, and false for other messages.
func PlaceOf(m Message) (Place, bool) {
	r, ok := m.RaftBody()
	if !ok || r.GetType() != pb.MsgApp {
		return Place{}, false
	}
	n, _ := m.Body.(Named)
	return Place{Term: r.GetTerm(), Index: r.GetIndex(), Empty: len(r.Entries) == 0 && n.Run.Count == 0}, true
}

// Supersedes reports whether a MsgApp at p makes an earlier MsgApp at q pointless, of
// the same group and waiting for the same peer.
//
// A leader appends at a follower in order of index, and only goes back when a message
// seems lost. From the new place on the leader sends everything again, so that waiting
// appends from there on become copies of entries in the newer message, or in later
// ones. On a link slower than the leader, copies would take most of the link: the queue
// overflows, the leader goes back, and queues everything anew behind itself.
func (p Place) Supersedes(q Place) bool {
	return p.Term >= q.Term && p.Index <= q.Index && (!p.Empty || q.Empty)
}
