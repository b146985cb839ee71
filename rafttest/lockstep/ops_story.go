// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"github.com/weftraft/weft/raft"
)

// Some bugs show only after a chain of events that is unlikely among single random steps: a slow
// disk while leaders change, or a member that lags so far that it needs a snapshot, and needs a
// second snapshot before the first is written. The ops of this file make such chains, and draw the
// details.

// slowDisk makes a member's disk slow, or fast again. At a slow disk, writes and the reports of
// finished writes wait, while messages keep arriving.
func (s *schedule) slowDisk(m *member) { m.slow = !m.slow }

// stalls reports whether a slow disk makes its host wait now.
func (s *schedule) stalls(m *member) bool { return m.slow && !s.oneIn(12) }

// anyLeader returns a running leader, or nil.
func (s *schedule) anyLeader() *member {
	if m := s.proposer(s.members[0]); m.running() && m.state.SoftState.RaftState == raft.StateLeader {
		return m
	}
	return nil
}

// bustle lets all members work and talk for some rounds.
func (s *schedule) bustle(rounds int) {
	for range rounds {
		for _, m := range s.members {
			if m.running() && s.doomed == nil {
				s.turn(m)
			}
		}
		s.deliverAll(nil)
	}
}

// upheaval makes a leader append entries that reach only one follower, with a slow disk. Then
// another member wins, and the follower's entries are replaced during their write.
func (s *schedule) upheaval(f *member) {
	old := s.anyLeader()
	if old == nil || old == f || s.plan.lossless {
		return
	}
	f.slow = true
	s.proposeTo(old, s.between(0, 2))
	s.bustle(1)
	s.island = map[uint64]bool{old.id: true, f.id: true}
	s.proposeTo(old, s.between(1, 3))
	s.bustle(s.between(1, 2))
	s.island = map[uint64]bool{old.id: true}
	next := s.members[s.IntN(len(s.members))]
	if next == old || !next.running() || s.doomed != nil {
		return
	}
	s.campaign(next)
	for range s.between(2, 6) {
		s.bustle(1)
		s.proposeTo(next, s.IntN(2))
	}
	if s.oneIn(2) {
		s.island = nil
	}
}

// lagBehind cuts a member off while the other members go on and compact their logs. When the member
// is connected again, with a slow disk, the member needs a snapshot.
func (s *schedule) lagBehind(f *member) {
	leader := s.anyLeader()
	if leader == nil || leader == f || s.plan.lossless {
		return
	}
	s.island = map[uint64]bool{f.id: true}
	for range s.between(1, 3) {
		s.proposeTo(leader, s.between(1, 3))
		s.bustle(2)
	}
	for _, m := range s.members {
		if m != f && m.running() && s.doomed == nil {
			s.compact(m)
		}
	}
	if s.oneIn(2) {
		s.giveUpOn(leader, f)
	}
	s.island = nil
	f.slow = s.oneIn(2)
	for range s.between(1, 4) {
		if leader.running() && s.doomed == nil {
			s.tick(leader)
		}
		s.bustle(1)
		if f.slow && leader.running() && s.doomed == nil && s.oneIn(2) {
			s.snapshotReport(leader, f.id, raft.SnapshotFailure) // a wrong report, so that the leader sends another snapshot
			s.proposeTo(leader, 1)
			s.compactIfRunning(leader)
		}
	}
}

// giveUpOn makes a leader notice that a member is away: the leader must not send snapshots to this
// member then.
func (s *schedule) giveUpOn(leader, f *member) {
	if !leader.running() || s.doomed != nil {
		return
	}
	s.unreachable(leader, f.id)
	for range leader.cfg.ElectionTick + 1 {
		if leader.running() && s.doomed == nil {
			s.tick(leader)
		}
		s.bustle(1)
	}
	s.proposeTo(leader, 1)
}

func (s *schedule) compactIfRunning(m *member) {
	if m.running() && s.doomed == nil {
		s.compact(m)
	}
}

// proposeTo proposes n times at a member.
func (s *schedule) proposeTo(m *member, n int) {
	for range n {
		if m.running() && s.doomed == nil {
			s.proposeAt(m)
		}
	}
}
