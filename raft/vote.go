// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// handleVote answers a candidate (MsgVote), or a node in a pre-election (MsgPreVote).
//
// Learners vote too. A promoted learner may be the last to hear of its promotion, and
// the other voters may be unable to elect a leader without the learner.
func (r *raft) handleVote(m *pb.Message) {
	answer := pb.MsgVoteResp
	if m.GetType() == pb.MsgPreVote {
		answer = pb.MsgPreVoteResp
	}
	theirs, ours := ecraft.ID{Term: m.GetLogTerm(), Index: m.GetIndex()}, r.log.last()
	if !r.mayVote(m) || !atLeast(theirs, ours) {
		r.cfg.Logger.Infof("raft: node %x (voted for %x, log ends at %v) refuses %s of %x (log ends at %v) at term %d",
			r.id, r.vote, ours, m.GetType(), m.GetFrom(), theirs, r.term)
		r.vouch(r.message(answer, m.GetFrom()).withReject())
		return
	}
	r.cfg.Logger.Infof("raft: node %x (log ends at %v) grants %s of %x (log ends at %v) at term %d",
		r.id, ours, m.GetType(), m.GetFrom(), theirs, m.GetTerm())
	// The answer has the term of the question, which for a pre-vote is not
	// ours: the asker ignores answers of lower terms.
	r.vouch(r.message(answer, m.GetFrom()).withTerm(m.GetTerm()))
	if m.GetType() == pb.MsgVote {
		r.quietTicks = 0
		r.vote = m.GetFrom()
	}
}

// mayVote reports whether this node is free to vote for the sender: this node has
// neither voted for another in this term nor seen the term's leader, or the question is
// about a later term.
//
// A node refuses its vote here for reasons outside of the logs, for example a promise
// to another node.
func (r *raft) mayVote(m *pb.Message) bool {
	switch {
	case !r.extension.MayVote(m, isTransfer(m)):
		return false
	case r.vote == m.GetFrom():
		return true // again: the first answer may have been lost
	case r.vote == None && r.lead == None:
		return true
	default:
		return m.GetType() == pb.MsgPreVote && m.GetTerm() > r.term
	}
}

// refusesCampaigns reports whether this node stands by its leader. After word from the
// leader within the least election timeout (thesis 6.2) it does, so that a removed
// node, or a node cut off for a while, cannot disturb the rest.
func (r *raft) refusesCampaigns() bool {
	return r.cfg.CheckQuorum && r.lead != None && int(r.quietTicks) < r.cfg.ElectionTick
}

// isTransfer reports whether a vote is asked for at the leader's own wish.
func isTransfer(m *pb.Message) bool { return string(m.GetContext()) == string(transfer) }
