// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "go.etcd.io/raft/v3/quorum"

// Whether the host's writes get on; see Config.YieldWhenLate.
//
// A disk that hangs returns no error. The followers of a leader with such a disk store,
// acknowledge, and hear heartbeats; the leader alone cannot apply anything, and once its
// uncommitted entries reach their bound, the group stands still. Only the leader can see it.

// watch counts a tick.
func (t *tail) watch() {
	if t.handed > 0 || t.snapshotHanded {
		t.waited++
	} else {
		t.waited = 0
	}
}

// late reports whether something was handed out to be written more than an election timeout
// ago, and nothing has been reported as written since.
func (r *raft) late() bool {
	t := &r.log.tail
	return r.cfg.YieldWhenLate && int(t.waited) > r.cfg.ElectionTick && (t.handed > 0 || t.snapshotHanded)
}

// yield has a late leader go, and reports whether this node still leads: first the leader hands
// over; an election timeout later it steps down, and so falls silent.
//
// If no majority has more than this leader, all disks may be that slow. Another leader would be
// late with its first entry, too, so this one stays.
func (l *leader) yield() bool {
	if !l.late() {
		l.yielding = 0
		return true
	}
	heir, outrun := l.ahead()
	if !outrun {
		return true
	}
	switch l.yielding++; {
	case l.yielding == 1:
		l.cfg.Logger.Warningf("raft: node %x has had no write reported for %d ticks at term %d, and others are ahead", l.id, l.log.tail.waited, l.term)
		l.handTo(l.members.Progress(heir), heir, false)
	case l.yielding > l.cfg.ElectionTick+1:
		l.cfg.Logger.Warningf("raft: node %x steps down at term %d: its writes are late, and nobody has taken over", l.id, l.term)
		l.becomeFollower(l.term, None)
		return false
	}
	return true
}

// ahead returns the voter with the longest log, and reports whether a majority holds, durably,
// more than this leader.
func (l *leader) ahead() (heir uint64, outrun bool) {
	own, ahead, best := l.members.Progress(l.id), map[uint64]bool{}, uint64(0)
	if own == nil {
		return None, false
	}
	for id, pr := range l.members.All() {
		ahead[id] = pr.Match > own.Match
		if ahead[id] && !pr.IsLearner && (pr.Match > best || pr.Match == best && id < heir) {
			heir, best = id, pr.Match
		}
	}
	return heir, l.members.Tally(ahead) == quorum.VoteWon
}
