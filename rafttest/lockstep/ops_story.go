// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

// Some bugs show only after a chain of events that single random steps hardly
// ever make: a disk that is slow while leaders come and go, a member that lags
// so far that it needs a snapshot, and another one before it has written the
// first. These ops make the chains, and leave the details to chance.

// slowDisk makes a member's disk slow, or quick again: what it is given to
// write waits, and so do the reports of what it has written, while messages
// keep coming.
func (s *schedule) slowDisk(m *member) { m.slow = !m.slow }

// stalls reports whether a slow disk makes its host wait now.
func (s *schedule) stalls(m *member) bool { return m.slow && !s.oneIn(12) }

// anyLeader returns a running leader, or nil.
func (s *schedule) anyLeader() *member {
	if m := s.proposer(s.members[0]); m.running() && m.state.SoftState.RaftState == stateLeader {
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

// upheaval has a leader append entries that reach one slow follower only, and
// then another member win: the follower's entries are replaced while they are
// being written.
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

// lagBehind cuts a member off while the rest goes on and compacts its logs. When
// it is back, with a slow disk, it needs a snapshot.
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
			s.snapshotReport(leader, f.id, 2) // wrongly, so that it is sent another one
			s.proposeTo(leader, 1)
			s.compactIfRunning(leader)
		}
	}
}

// giveUpOn has a leader learn that a member is away: it must not send it
// snapshots then.
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
