// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Handing leadership over (thesis 3.10): the leader takes no more proposals, brings the
// transferee's log up to its own, and tells it to campaign at once. If the transfer
// takes longer than an election timeout, the leader goes on leading.

// transferTo begins to hand leadership to a voter.
func (l *leader) transferTo(pr *tracker.Progress, to uint64) {
	if pr.IsLearner || to == l.transferee {
		return
	}
	l.transferee = None // a new wish ends the one before, also "stay with me"
	if to != l.id {
		l.handTo(pr, to, false)
	}
}

// handTo begins to hand leadership to another member. must: an extension says that this node
// cannot go on.
func (l *leader) handTo(pr *tracker.Progress, to uint64, must bool) {
	l.cfg.Logger.Infof("raft: node %x hands leadership to %x at term %d", l.id, to, l.term)
	l.quietTicks = 0
	l.transferee, l.mustHand = to, must
	if pr.Match == l.log.last().Index && l.extension.MayHandTo(to) {
		l.send(l.message(pb.MsgTimeoutNow, to))
	} else {
		l.sendAppend(to, pr, true)
	}
}

// continueTransfer finishes a transfer when the transferee's log is complete.
func (l *leader) continueTransfer(from uint64, pr *tracker.Progress) {
	if from == l.transferee && pr.Match == l.log.last().Index && l.extension.MayHandTo(from) {
		l.send(l.message(pb.MsgTimeoutNow, from))
	}
}
