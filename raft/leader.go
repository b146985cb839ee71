// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
)

// leader appends to the log of its term and brings the other members' logs to agree.
// members.All has the leader's knowledge of each member.
type leader struct {
	*raft
	// sinceHeartbeat counts ticks since the last round of heartbeats.
	sinceHeartbeat int
	// transferee is the member to which leadership is being handed, or None.
	transferee uint64
	// mustHand says that this leader hands leadership over because it can never apply what it
	// commits: see the effect HandOver.
	mustHand bool
	// confChangeAt is at or behind the last configuration change in the log. A further
	// change may be appended once this index is applied (thesis 4.1: one at a time).
	confChangeAt uint64
	// leaveAt is this term's last entry for leaving a joint configuration.
	leaveAt uint64
	// uncommitted is the payload in the log behind the commit index, counted from the
	// beginning of the term: possibly too low, never too high.
	uncommitted entryPayloadSize
	// toldFull: a line about a dropped proposal was logged in this election timeout. Others propose as fast as they can.
	toldFull bool
	// yielding counts the ticks since this leader began to hand over because it is late.
	yielding int
	// held is a configuration change waiting for a brake, or nil.
	held *pb.Entry
	// reads are ReadIndex requests waiting for a quorum's word.
	reads readQueue
}

// becomeLeader begins this node's leadership of its term.
func (r *raft) becomeLeader() {
	l := &leader{raft: r}
	r.enter(l, r.term, r.id)
	self := r.members.Progress(r.id)
	self.BecomeReplicate()
	self.RecentActive = true
	last := r.log.last()
	// The log may hold an unapplied configuration change. Instead of a search, the end
	// of the log counts as one.
	l.confChangeAt = last.Index
	// An entry of its own term lets a leader commit entries of earlier terms (thesis
	// 3.6.2).
	if l.extension.TakeOver() {
		l.perform()
	} else {
		l.append(copyEntry(&pb.Entry{}, ecraft.ID{Term: r.term, Index: last.Index + 1}))
	}
	r.cfg.Logger.Infof("raft: node %x leads at term %d", r.id, r.term)
	l.broadcastAppend()
}

func (l *leader) state() StateType { return StateLeader }

// tick counts one tick: a quorum check each election timeout, and a round of
// heartbeats.
func (l *leader) tick() {
	l.sinceHeartbeat++
	if l.countTick(); int(l.quietTicks) >= l.cfg.ElectionTick {
		l.quietTicks, l.toldFull = 0, false
		preferred := l.preferred()
		if l.cfg.CheckQuorum && !l.checkQuorum() {
			return
		}
		// A transfer has failed after an election timeout; go on leading.
		l.transferee = None
		l.prefer(preferred)
	}
	if l.cfg.YieldWhenLate && !l.yield() {
		return
	}
	if l.sinceHeartbeat >= l.cfg.HeartbeatTick {
		l.sinceHeartbeat = 0
		l.broadcastHeartbeat()
	}
}

// checkQuorum steps down if no quorum has been heard from since the last check,
// and reports whether this node still leads.
func (l *leader) checkQuorum() bool {
	if !l.members.Active() {
		l.cfg.Logger.Warningf("raft: node %x steps down at term %d: it has not heard from a quorum", l.id, l.term)
		l.becomeFollower(l.term, None)
		return false
	}
	for id, pr := range l.members.All() {
		if id != l.id {
			pr.RecentActive = false
		}
	}
	return true
}

func (l *leader) step(m *pb.Message) error {
	switch m.GetType() {
	case pb.MsgBeat:
		l.broadcastHeartbeat()
	case pb.MsgCheckQuorum:
		l.checkQuorum()
	case pb.MsgProp:
		return l.propose(m.GetEntries())
	case pb.MsgReadIndex:
		l.readIndex(m)
	case pb.MsgAppResp, pb.MsgHeartbeatResp, pb.MsgSnapStatus, pb.MsgUnreachable, pb.MsgTransferLeader:
		if pr := l.members.Progress(m.GetFrom()); pr != nil {
			return l.stepMember(pr, m)
		}
	}
	return nil
}

// stepMember handles messages from a member, or from the host about a member.
func (l *leader) stepMember(pr *tracker.Progress, m *pb.Message) error {
	switch m.GetType() {
	case pb.MsgAppResp:
		if last := l.log.last().Index; !m.GetReject() && m.GetIndex() > last {
			return fmt.Errorf("%w: %x acknowledges index %d, but this leader's log ends at %d", ErrMalformedMessage, m.GetFrom(), m.GetIndex(), last)
		}
		pr.RecentActive = true
		if m.GetReject() {
			l.appendRejected(pr, m)
		} else {
			l.appendAccepted(pr, m)
		}
	case pb.MsgHeartbeatResp:
		l.heartbeatAnswered(pr, m)
	case pb.MsgSnapStatus:
		l.snapshotSent(pr, m)
	case pb.MsgUnreachable:
		// Appends in flight are probably lost; ask before sending more.
		if pr.State == tracker.StateReplicate {
			pr.BecomeProbe()
		}
	case pb.MsgTransferLeader:
		l.transferTo(pr, m.GetFrom())
	}
	return nil
}
