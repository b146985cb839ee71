// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
)

// CampaignType says why a node campaigns. A vote request has the type in its context if
// a leader asked for the campaign.
type CampaignType string

const (
	preElection CampaignType = "CampaignPreElection" // asks whether it could win
	election    CampaignType = "CampaignElection"    // after a timeout, or a pre-election
	transfer    CampaignType = "CampaignTransfer"    // because the leader said so
)

// candidate asks for votes: for votes in its term, or in a pre-election (pre) whether
// nodes would vote for the candidate in the next term.
type candidate struct {
	*raft
	pre bool
	// votes are the answers so far, the first of each node.
	votes map[uint64]bool
}

func (c *candidate) state() StateType {
	if c.pre {
		return StatePreCandidate
	}
	return StateCandidate
}

func (c *candidate) tick() { c.tickTowardsElection() }

// tickTowardsElection lets a tick pass at a node without a leader's powers.
func (r *raft) tickTowardsElection() {
	r.countTick()
	if r.quietTicks >= r.patience && !r.letsOthersCampaign() && r.promotable() {
		r.quietTicks = 0
		if err := r.Step(&request(pb.MsgHup).withFrom(r.id).msg); err != nil {
			r.cfg.Logger.Errorf("raft: node %x cannot campaign: %v", r.id, err)
		}
	}
}

// campaign starts a campaign unless this node must not win.
func (r *raft) campaign(why CampaignType) {
	if r.leading() != nil || !r.mayCampaign() {
		return
	}
	r.cfg.Logger.Infof("raft: node %x starts a campaign (%s) at term %d", r.id, why, r.term)
	r.runFor(why)
}

// mayCampaign reports whether this node may win an election.
//
// A committed but unapplied configuration change forbids a campaign, because this node
// would count votes by the old configuration.
func (r *raft) mayCampaign() bool {
	switch {
	case !r.promotable():
		r.cfg.Logger.Warningf("raft: node %x cannot campaign: it is no voter, or has a snapshot to apply", r.id)
	case r.log.anyUnappliedConfChange() && !r.extension.MayCampaign():
		r.cfg.Logger.Warningf("raft: node %x cannot campaign at term %d: configuration changes in (%d, %d] are not applied yet",
			r.id, r.term, r.log.applied, r.log.committed)
	case r.late():
		r.cfg.Logger.Infof("raft: node %x does not campaign at term %d: no write was reported for %d ticks", r.id, r.term, r.log.tail.waited)
	case !r.extension.MayRun():
		r.cfg.Logger.Infof("raft: node %x does not campaign at term %d: it has promised not to, for a while", r.id, r.term)
	default:
		return true
	}
	return false
}

// runFor asks every voter for its vote; this node's own vote comes back once durable.
func (r *raft) runFor(why CampaignType) {
	ask, answer, term := pb.MsgVote, pb.MsgVoteResp, r.term+1
	if why == preElection {
		ask, answer = pb.MsgPreVote, pb.MsgPreVoteResp
		// Term, vote and timeout stay: a pre-election changes nothing.
		r.turn(&candidate{raft: r, pre: true, votes: map[uint64]bool{}}, None)
	} else {
		r.enter(&candidate{raft: r, votes: map[uint64]bool{}}, term, None)
		r.vote = r.id
	}
	last := r.log.last()
	for _, id := range r.members.Voters() {
		if id == r.id {
			r.vouch(r.message(answer, id).withTerm(term))
			continue
		}
		e := r.message(ask, id).withTerm(term).withEntryID(last)
		if why == transfer {
			e.msg.Context = []byte(why)
		}
		r.send(e)
	}
}

func (c *candidate) step(m *pb.Message) error {
	answer := pb.MsgVoteResp
	if c.pre {
		answer = pb.MsgPreVoteResp
	}
	switch t := m.GetType(); {
	case t == answer:
		c.count(m)
	case isFromLeader(t) && m.GetTerm() == 0: // to take its term over would be to forget terms and votes
		return fmt.Errorf("%w: %s from %x has no term", ErrMalformedMessage, t, m.GetFrom())
	case isFromLeader(t): // the sender has won this term
		c.becomeFollower(m.GetTerm(), m.GetFrom())
		return c.role.step(m)
	case t == pb.MsgProp:
		return ErrProposalDropped
	}
	return nil
}

// count counts a vote.
func (c *candidate) count(m *pb.Message) {
	from := m.GetFrom()
	if _, again := c.votes[from]; !again {
		c.votes[from] = !m.GetReject()
	}
	c.cfg.Logger.Infof("raft: node %x has %s from %x, rejection %t, at term %d: %s",
		c.id, m.GetType(), from, m.GetReject(), c.term, c.members.Tally(c.votes))
	c.decide()
}

// decide draws the consequence of the votes so far when the outcome is known.
func (c *candidate) decide() {
	switch result := c.members.Tally(c.votes); {
	case c.members.Tracks() && !c.promotable(): // learned meanwhile that it has no vote
		c.becomeFollower(c.term, None)
	case result == quorum.VoteLost, result == quorum.VoteWon && c.pre && !c.extension.MayRun():
		c.becomeFollower(c.term, None)
	case result == quorum.VoteWon && c.pre:
		c.runFor(election)
	case result == quorum.VoteWon && c.members.Progress(c.id) == nil: // removed meanwhile; a learner may lead
		c.becomeFollower(c.term, None)
	case result == quorum.VoteWon && c.termIsDurable():
		c.win()
	}
}

// termIsDurable reports whether term and vote of this candidacy are written. With async
// storage writes the votes of others may come before: a leader that lost power then
// could win the same term again with another log, because the voters would grant a
// repeated request. The candidate's own vote arrives after the write. Without async
// writes, the host sends vote requests only after the write.
func (c *candidate) termIsDurable() bool { return !c.cfg.AsyncStorageWrites || c.votes[c.id] }

// campaigning reports whether this node asks for votes or has just won an election.
func (r *raft) campaigning() bool {
	s := r.role.state()
	return s == StateCandidate || s == StatePreCandidate
}
