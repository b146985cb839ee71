// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// The schedules leave out reads for which Weft differs from upstream on purpose. The first kind is
// a read that reaches the only voter of a group before the voter has committed an entry of its
// term: upstream answers at once, with a commit index that may be too old after a restart. The
// second kind is a read at a leader that is no voter any more, in a group with a single voter:
// upstream answers at once, although the voter may lead by now.

// tooEarly reports whether a read must not reach a member now. tooEarly also notes a read that
// waits at a leader of several voters, because the read becomes a read of the first kind if the
// member leads again later as the only voter.
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
	if m.state.SoftState.RaftState != raft.StateLeader {
		return false
	}
	term, err := m.disk[0].memory.Term(m.state.HardState.GetCommit())
	return err != nil || term != m.state.HardState.GetTerm()
}

// leadsAsStranger reports whether a member leads a group whose single voter is another member.
func (m *member) leadsAsStranger() bool {
	_, voter := m.state.Config.Voters[0][m.id]
	return m.state.SoftState.RaftState == raft.StateLeader && singleton(&m.state.Config) && !voter
}

func singleton(c *tracker.Config) bool { return len(c.Voters[0]) == 1 && len(c.Voters[1]) == 0 }

// isRead reports whether a message asks for a read.
func isRead(m *pb.Message) bool { return m.GetType() == pb.MsgReadIndex }

// doom marks a member to be crashed before the next step, if the member has become the only voter
// while reads wait.
func (s *schedule) doom(m *member) {
	if m.readsWait && singleton(&m.state.Config) {
		s.tally.Hit("reads left out: waiting at what became a single voter")
		s.doomed = m
	}
}

// Weft differs from upstream on purpose also in an election with async storage writes. Upstream
// leads as soon as enough other members have voted for it, also before its own term and vote are
// written, and so may lead the same term again after a power failure. Weft waits for its own vote.
// So schedules hold the votes of other members back until the own vote is written.

// prematureVote reports whether a message is a vote that must not reach a member now, and notes the
// arrival of the member's own vote.
func (m *member) prematureVote(msg *pb.Message) bool {
	if !m.cfg.AsyncStorageWrites || msg.GetType() != pb.MsgVoteResp || msg.GetReject() {
		return false
	}
	if msg.GetFrom() == m.id {
		m.ownVote = max(m.ownVote, msg.GetTerm())
		return false
	}
	return m.state.SoftState.RaftState == raft.StateCandidate && m.ownVote != m.state.HardState.GetTerm()
}

// A node with a prepared storage that has never been in a term refuses the vote of a shorter log.
// The refusal has no term, and upstream panics on the missing term.

// termlessRefusal reports whether a message may lead to such a refusal.
func (m *member) termlessRefusal(msg *pb.Message) bool {
	return msg.GetType() == pb.MsgPreVote && m.state.HardState.GetTerm() == 0
}
