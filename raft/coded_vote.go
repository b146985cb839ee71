// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// Who refuses a vote says how far it knows the log to be committed.
//
// Say that a change demotes or removes a voter, which is the first to hear that
// the change is committed, and has the longest log; then others die. Those who
// are left have the change in their logs, do not know that it is committed, and
// count votes by the members before it. So they need the vote of the one that was
// demoted. It refuses, as its log is longer, and may not campaign itself: nobody
// can lead, although a majority of the members in force is there.
//
// What is committed is so for everybody. A candidate whose log has that very entry
// agrees with the other up to there, and takes its word as it takes a leader's.

// refuseVote answers a candidate, or who asks whether to become one, with no.
func (r *raft) refuseVote(answer pb.MessageType, to uint64) {
	e := r.message(answer, to).withReject()
	if r.coded != nil {
		if term, err := r.log.term(r.log.committed); err == nil {
			e.withEntryID(entryID{term: term, index: r.log.committed})
		}
	}
	r.vouch(e)
}

// learnFromRefusal raises the commit index to what a refused vote says.
func (c *coded) learnFromRefusal(m *pb.Message) {
	id := entryID{term: m.GetLogTerm(), index: m.GetIndex()}
	if c == nil || !m.GetReject() || id.index <= c.r.log.committed || !c.r.log.holds(id) {
		return
	}
	c.r.logger.Infof("raft: node %x learns from %x, which refuses its vote, that its log is committed up to %v", c.r.id, m.GetFrom(), id)
	from := c.r.log.committed
	c.r.log.commitTo(id.index)
	c.learnt(from, id.index)
}
