// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A read that reaches the only voter of a group before it has committed an
// entry of its term is one thing on which Weft means to differ: upstream
// answers at once, by a commit index that may be too old after a restart. So
// schedules leave such reads out, and only such. Another is a read at a leader
// that is no voter any more where one voter is left: upstream answers at once,
// although that voter may lead by now.

// tooEarly reports whether a read must not reach a member now. It also notes
// that a read waits at a leader of several voters: should the member lead again
// as the only voter, with the read still waiting, it would be such a read.
func (s *schedule) tooEarly(m *member) bool {
	if m.leadsAsStranger() {
		s.tally.Hit("reads left out: at a leader that is not the one voter")
		return true
	}
	if !m.leadsWithoutCommit() {
		return false
	}
	if singleton(&m.state.Config) {
		s.tally.Hit("reads left out: at a single voter before its first commit")
		return true
	}
	m.readsWait = true
	return false
}

// leadsWithoutCommit reports whether a member leads and has not committed an
// entry of its term, as far as its disk shows.
func (m *member) leadsWithoutCommit() bool {
	if m.state.SoftState.RaftState != stateLeader {
		return false
	}
	term, err := m.disk[0].Term(m.state.HardState.GetCommit())
	return err != nil || term != m.state.HardState.GetTerm()
}

// leadsAsStranger reports whether a member leads a single voter that is another.
func (m *member) leadsAsStranger() bool {
	_, voter := m.state.Config.Voters[0][m.id]
	return m.state.SoftState.RaftState == stateLeader && singleton(&m.state.Config) && !voter
}

func singleton(c *tracker.Config) bool { return len(c.Voters[0]) == 1 && len(c.Voters[1]) == 0 }

// isRead reports whether a message asks for a read.
func isRead(m *pb.Message) bool { return m.GetType() == pb.MsgReadIndex }

// doom marks a member to be crashed before anything else happens, if it has
// become the only voter with reads waiting.
func (s *schedule) doom(m *member) {
	if m.readsWait && singleton(&m.state.Config) {
		s.tally.Hit("reads left out: waiting at what became a single voter")
		s.doomed = m
	}
}

// The other: with async storage writes upstream leads as soon as others have
// voted for it, also before its own term and vote are written, and so may lead
// the same term again after a power failure. Weft waits for its own vote. So
// schedules hold votes of others back until then.

// prematureVote reports whether a message is a vote that must not reach a member
// now, and notes when it hears its own.
func (m *member) prematureVote(msg *pb.Message) bool {
	if !m.cfg.AsyncStorageWrites || msg.GetType() != pb.MsgVoteResp || msg.GetReject() {
		return false
	}
	if msg.GetFrom() == m.id {
		m.ownVote = max(m.ownVote, msg.GetTerm())
		return false
	}
	return m.state.SoftState.RaftState == stateCandidate && m.ownVote != m.state.HardState.GetTerm()
}

// A node that has never been in a term, as its storage came prepared, refuses the
// vote of a shorter log without a term in its answer, on which upstream panics.

// termlessRefusal reports whether a message may end so.
func (m *member) termlessRefusal(msg *pb.Message) bool {
	return msg.GetType() == pb.MsgPreVote && m.state.HardState.GetTerm() == 0
}
