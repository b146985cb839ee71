// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Questions about configurations, as values.

// isMember reports whether a node is a voter or learner of a configuration.
func isMember(c tracker.Config, id uint64) bool {
	_, learner := c.Learners[id]
	_, next := c.LearnersNext[id]
	return learner || next || isVoter(c, id)
}

func isVoter(c tracker.Config, id uint64) bool {
	_, incoming := c.Voters[0][id]
	_, outgoing := c.Voters[1][id]
	return incoming || outgoing
}

// changed returns the configuration after a change to t's.
func changed(t tracker.ProgressTracker, cc *pb.ConfChangeV2) (tracker.Config, tracker.ProgressMap, error) {
	return changedBy(confchange.Changer{Tracker: inForce(t), LastIndex: 1}, cc)
}

func changedBy(change confchange.Changer, cc *pb.ConfChangeV2) (tracker.Config, tracker.ProgressMap, error) {
	if cc.LeaveJoint() {
		return change.LeaveJoint()
	}
	if autoLeave, joint := cc.EnterJoint(); joint {
		return change.EnterJoint(autoLeave, cc.Changes...)
	}
	return change.Simple(cc.Changes...)
}

// inForce returns a tracker with the members of its configuration only. A leader may
// track members of configurations to come as well: see electorate.follow. For a change
// these are no members yet, or the outcome here would differ from the outcome
// elsewhere.
func inForce(t tracker.ProgressTracker) tracker.ProgressTracker {
	for id := range t.Progress {
		if !isMember(t.Config, id) {
			only := tracker.ProgressMap{}
			for id, pr := range t.Progress {
				if isMember(t.Config, id) {
					only[id] = pr
				}
			}
			t.Progress = only
			break
		}
	}
	return t
}

func cloneProgress(m tracker.ProgressMap) tracker.ProgressMap {
	out := make(tracker.ProgressMap, len(m))
	for id, pr := range m {
		p := *pr
		out[id] = &p
	}
	return out
}
