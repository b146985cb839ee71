// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// applyConfChange puts a committed configuration change into force. It was
// checked when it was proposed; one that does not fit now breaks an invariant
// and panics, as this node would from here on count other quorums than the rest.
func (r *raft) applyConfChange(cc *pb.ConfChangeV2) *pb.ConfState {
	change := confchange.Changer{Tracker: inForce(r.members), LastIndex: r.log.last().index}
	var (
		cfg      tracker.Config
		progress tracker.ProgressMap
		err      error
	)
	if cc.LeaveJoint() {
		cfg, progress, err = change.LeaveJoint()
	} else if autoLeave, joint := cc.EnterJoint(); joint {
		cfg, progress, err = change.EnterJoint(autoLeave, cc.Changes...)
	} else {
		cfg, progress, err = change.Simple(cc.Changes...)
	}
	if err != nil {
		panic(fmt.Sprintf("raft: node %x cannot apply configuration change %s to %s: %v", r.id, DescribeConfChange(cc), r.members.Config, err))
	}
	for id, pr := range progress {
		// What a leader knows already of members of configurations to come.
		if was := r.members.Progress[id]; was != nil && change.Tracker.Progress[id] == nil {
			was.IsLearner = pr.IsLearner
			progress[id] = was
		}
	}
	r.switchConfig(cfg, progress)
	r.coded.confSwitched(change.Tracker.Progress)
	cs := r.members.ConfState()
	if l := r.leading(); l != nil {
		l.configSwitched()
	}
	return cs
}

// inForce returns a tracker with the members of its configuration only. A leader
// that codes may follow members of configurations to come as well: see followPending.
// To a change these are no members yet, or it would have another outcome here than
// elsewhere.
func inForce(t tracker.ProgressTracker) tracker.ProgressTracker {
	member := func(id uint64) bool {
		_, learner := t.Learners[id]
		_, next := t.LearnersNext[id]
		return learner || next || isVoter(t.Config, id)
	}
	for id := range t.Progress {
		if !member(id) {
			only := tracker.ProgressMap{}
			for id, pr := range t.Progress {
				if member(id) {
					only[id] = pr
				}
			}
			t.Progress = only
			break
		}
	}
	return t
}

func (r *raft) switchConfig(cfg tracker.Config, progress tracker.ProgressMap) {
	r.members.Config, r.members.Progress = cfg, progress
	r.logger.Infof("raft: node %x has members %s", r.id, cfg)
}

// configSwitched draws a leader's consequences from new members.
func (l *leader) configSwitched() {
	if l.enc != nil {
		l.arrangeSlots()
	}
	if pr := l.members.Progress[l.id]; pr == nil || pr.IsLearner {
		// It leads a group it is no voter of, until that group has another
		// leader (thesis 4.2.2), unless it was told to stop.
		if l.cfg.StepDownOnRemoval {
			l.becomeFollower(l.term, None)
		}
		return
	}
	if len(l.members.Voters[0]) == 0 {
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
	if !isVoter(l.members.Config, l.transferee) {
		l.transferee = None
	}
}

func isVoter(c tracker.Config, id uint64) bool {
	_, incoming := c.Voters[0][id]
	_, outgoing := c.Voters[1][id]
	return incoming || outgoing
}

// leaveJointIfDue proposes to leave a joint configuration that says it is to be
// left by itself, once it is the last one in the log. If that fails, as during
// a transfer, the next applied entry brings us here again.
func (l *leader) leaveJointIfDue() {
	if !l.members.AutoLeave || l.log.applied < l.confChangeAt || !l.mayLeaveJoint() {
		return
	}
	if l.enc != nil && l.enc.waiting != nil {
		return // the host has proposed to leave, and that waits for a tick
	}
	if l.leaveAt == l.confChangeAt {
		l.logger.Warningf("raft: node %x hears that entry %d, which leaves %s, is applied before ApplyConfChange was called for it; call that first: "+
			"each node panics at the second such entry that a leader appends otherwise", l.id, l.leaveAt, l.members.Config)
		if l.coded != nil {
			return // upstream's library appends it
		}
	}
	// No data: read as the empty change, which leaves, and fits every limit.
	if err := l.propose([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum()}}); err != nil {
		l.logger.Infof("raft: node %x does not leave %s yet: %v", l.id, l.members.Config, err)
	}
}
