// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// This file is the third phase: nobody asks for anything, and all are where they
// should be. Then a group sends heartbeats and their answers, and nothing else: whatever
// is sent over and over to no end costs most where there are many groups.

// For how long a group that is live again may have something to say, and for how long
// it is watched when it has said it.
const (
	settleTime = 4 * electionTime
	restTime   = 3 * electionTime
)

// isLive reports whether the group has done all that was asked of it.
func (f *finale) isLive() bool { return f != nil && f.live }

// settle lets the group have its say.
func (f *finale) settle() {
	f.membersAt = f.s.check.newestConf().index
	f.settles = max(f.s.Now(), f.lastFault()) + settleTime
	f.deadline = f.settles + finaleTime
}

// settled reports whether it has had that, since the members last changed: a change may
// have been under way all the time.
func (f *finale) settled() bool {
	if f.membersAt != f.s.check.newestConf().index {
		f.settle()
	}
	return f.s.Now() >= f.settles
}

// rest looks at what the group sends from now on, and ends the run.
func (f *finale) rest() {
	f.resting = true
	f.s.After(restTime, func() { f.done = true })
}

// lastFault is when the last message arrives late, and the last connection breaks.
func (f *finale) lastFault() time.Duration {
	late := f.s.plan.duration + lateMost
	if b := f.s.breaks(); b != nil {
		late = max(late, f.s.plan.duration+b.calm)
	}
	return late
}

// sentAtRest checks a message that a node sends.
func (f *finale) sentAtRest(n *node, m *pb.Message) {
	if f == nil || !f.resting {
		return
	}
	if p, ok := n.proc.(*coreProcess); ok && p.rn.CodingStatus().Waiting != "" {
		return // a change waits, for voters that may never come: that is no rest
	}
	switch m.GetType() {
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp:
		f.s.reach.AtRest++
	default:
		f.s.fail(Rest, "node %d sends%s", n.id, appendMessage(nil, m))
	}
}
