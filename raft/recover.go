// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// recoverer has won an election and may not lead yet, because its extension must first
// learn from the other members. A recoverer appends nothing, looks like a candidate to
// its host, and gives up like a candidate whose votes do not come.
type recoverer struct {
	*raft
}

func (rc *recoverer) state() StateType { return StateCandidate }

// win begins the leadership of a term, or the recovery before the leadership.
func (r *raft) win() {
	if r.extension.MayLead() {
		r.becomeLeader()
		return
	}
	r.cfg.Logger.Infof("raft: node %x has won term %d and must recover entries behind its commit index %d", r.id, r.term, r.log.committed)
	r.enter(&recoverer{raft: r}, r.term, None)
}

func (rc *recoverer) tick() {
	if rc.quietTicks++; rc.quietTicks >= rc.patience {
		rc.cfg.Logger.Warningf("raft: node %x gives up term %d: too few members answered for it to complete its log", rc.id, rc.term)
		rc.becomeFollower(rc.term, None)
	}
}

func (rc *recoverer) step(m *pb.Message) error {
	if m.GetType() == pb.MsgProp {
		return ErrProposalDropped
	}
	return nil
}

// proceed leads as soon as the extension permits, after a last cut.
func (rc *recoverer) proceed() {
	cut, done := rc.extension.Recovered()
	if !done {
		return
	}
	rc.extension.Cuts(cut)
	if cut > 0 {
		rc.cfg.Logger.Warningf("raft: node %x cuts its log from %d on at term %d: entries up to %d were not committed, and are not to be restored",
			rc.id, cut, rc.term, rc.log.last().Index)
		rc.log.cut(cut)
	}
	if !rc.promotable() {
		// This node has meanwhile lost its vote.
		rc.becomeFollower(rc.term, None)
		return
	}
	rc.becomeLeader()
}

// hearWinner moves this node to the term of an election's winner, as a leader's append
// would, so that this node acknowledges nothing more to older leaders. The result says
// whether the question is to be answered.
func (r *raft) hearWinner(m *pb.Message) (bool, error) {
	from, term := m.GetFrom(), m.GetLogTerm()
	switch {
	case term > maxTerm:
		return false, fmt.Errorf("%w: question from %x has term %d; at most %d can be", ErrMalformedMessage, from, term, uint64(maxTerm))
	case term < r.term:
		r.vouch(r.message(pb.MsgAppResp, from)) // shows the sender the later term
		return false, nil
	case term > r.term:
		r.becomeFollower(term, from)
		return true, nil
	}
	switch ro := r.role.(type) {
	case *follower:
		ro.hearFrom(m)
	case *candidate:
		r.becomeFollower(term, from)
	default:
		return false, fmt.Errorf("%w: %x claims to have won term %d, which this node leads", ErrMalformedMessage, from, term)
	}
	return true, nil
}
