// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

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
	for range leader.timeout() + 1 {
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

// hastyCampaign has a member campaign for which a change is committed that takes its vote, or that
// leaves a joint configuration: a host may call Advance before it applies what it was handed. The
// candidate then applies the change while the votes come in.
func (s *schedule) hastyCampaign(f *member) {
	leader := s.anyLeader()
	if leader == nil || leader == f || f.cfg.AsyncStorageWrites || s.plan.lossless {
		return
	}
	s.proposeChangeAt(leader, s.drawFarewell(f))
	for range 4 {
		s.workWithoutApplying(f)
		s.bustleBeside(f)
		if !f.running() || s.doomed != nil {
			return
		}
		if holdsChange(f.toApply) {
			break
		}
	}
	if !holdsChange(f.toApply) || f.hand != nil {
		return
	}
	s.tally.Hit("stories: a campaign before a change is applied")
	s.campaign(f)
	s.workWithoutApplying(f)
	for apply := s.IntN(3); apply >= 0; apply-- {
		if s.bustleBeside(f); !f.running() || s.doomed != nil {
			return
		}
		s.workWithoutApplying(f)
	}
	for f.running() && len(f.toApply) > 0 {
		ents := f.toApply[0]
		f.toApply = f.toApply[1:]
		s.apply(f, ents)
	}
	s.bustleBeside(f)
}

// drawFarewell draws a change that may take a member's vote.
func (s *schedule) drawFarewell(m *member) pb.ConfChangeI {
	if len(m.state.Config.Voters[1]) > 0 {
		return &pb.ConfChangeV2{}
	}
	typ := pick(s.chance, pb.ConfChangeRemoveNode, pb.ConfChangeAddLearnerNode)
	return &pb.ConfChange{Type: typ.Enum(), NodeId: new(m.id)}
}

func holdsChange(pairs []pairOfEntries) bool {
	return slices.ContainsFunc(pairs, func(p pairOfEntries) bool {
		return slices.ContainsFunc(p[0], isChange)
	})
}

// workWithoutApplying makes a synchronous host write, send and call Advance, and put off the rest.
func (s *schedule) workWithoutApplying(m *member) {
	if m.running() && m.hand == nil && m.core[0].HasReady() {
		s.takeReady(m)
	}
	if m.running() && m.hand != nil && !m.written {
		s.writeReady(m)
	}
	if m.running() && m.hand != nil {
		s.advance(m)
	}
}

// bustleBeside delivers messages, and lets the other members work.
func (s *schedule) bustleBeside(f *member) {
	s.deliverAll(nil)
	for _, m := range s.members {
		if m != f && m.running() && s.doomed == nil {
			s.turn(m)
		}
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
