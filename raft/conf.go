// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
)

// applyConfChange puts a committed configuration change into force. The leader checked
// the change at proposal. A change that does not fit now breaks an invariant and
// panics, because this node would count other quorums than the rest from here on.
func (r *raft) applyConfChange(cc *pb.ConfChangeV2) *pb.ConfState {
	before, err := r.members.Apply(cc, r.log.last().Index)
	if err != nil {
		panic(fmt.Sprintf("raft: node %x cannot apply configuration change %s to %s: %v", r.id, DescribeConfChange(cc), r.members.Config(), err))
	}
	r.sayMembers()
	if l := r.leading(); l != nil {
		r.members.Follow(r.id, r.log.last().Index+1)
	}
	r.extension.Switched(before)
	if r.cfg.Coding != nil && r.campaigning() && !r.members.IsVoter(r.id) {
		r.becomeFollower(r.term, None) // campaigned in spite of the change: see mayCampaign
	}
	cs := r.members.ConfState()
	if l := r.leading(); l != nil {
		l.configSwitched()
	}
	return cs
}

// votersChanged draws the consequences where other voters count than before.
func (r *raft) votersChanged() {
	if l := r.leading(); l != nil {
		r.members.Follow(r.id, r.log.last().Index+1)
	}
	r.extension.VotersChanged()
}

// learnMembers takes the members that another node has in force at an entry, if this log has the
// entry. The other has applied it, so it is committed.
func (r *raft) learnMembers(id ecraft.ID, cs *pb.ConfState) {
	if !r.log.holds(id) {
		return
	}
	members, err := r.members.Restored(cs, r.log.last().Index)
	if err != nil {
		r.cfg.Logger.Warningf("raft: node %x takes no members from another, %s at %v: %v", r.id, DescribeConfState(cs), id, err)
		return
	}
	r.log.commitTo(id.Index)
	if r.members.Learn(members, id.Index) {
		r.cfg.Logger.Infof("raft: node %x learns from another that %s are the members at %v", r.id, DescribeConfState(cs), id)
		r.votersChanged()
		if c, ok := r.role.(*candidate); ok {
			c.decide()
		}
	}
}

func (r *raft) sayMembers() {
	r.cfg.Logger.Infof("raft: node %x has members %s", r.id, r.members.Config())
}

// configSwitched draws a leader's consequences from new members.
func (l *leader) configSwitched() {
	if pr := l.members.Progress(l.id); pr == nil || pr.IsLearner {
		// A leader without a vote leads until the group has another leader (thesis
		// 4.2.2), unless StepDownOnRemoval is set.
		if l.cfg.StepDownOnRemoval {
			l.becomeFollower(l.term, None)
		}
		return
	}
	if l.members.Smallest() == 0 {
		return
	}
	if l.advanceCommit() {
		l.broadcastAppend() // fewer are needed than before
	} else {
		l.members.Visit(func(id uint64, pr *tracker.Progress) {
			if id != l.id {
				l.sendAppend(id, pr, false) // new ones need not wait for a heartbeat
			}
		})
	}
	if !l.members.IsVoter(l.transferee) {
		l.transferee = None
	}
}
