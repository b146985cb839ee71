// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// A node whose log was lost has forgotten its votes and acknowledgements. Started under its
// old id, the node is a danger to its group: the node may vote twice in a term, and counts
// as a holder of committed entries that the node lacks.
//
// The leader's heartbeats reveal the loss. Each heartbeat carries an index that the node
// itself has acknowledged to this leader, and the log ends before that index. (A later
// leader knows of no acknowledgement, and brings the node up to date like a new node: no
// member can notice the loss then.) The node answers each heartbeat of this kind, so that
// the leader knows of the loss. The node gives up if a leader's heartbeats are all of this
// kind for an election timeout: a faulty peer that sends the like does not stop a node that
// leads, or hears of its leader.
type losses struct {
	*facts
	postRaft func(*pb.Message)

	own  logLoss
	lost map[uint64]bool // members whose logs are lost, as known to this leader
}

// logLoss is what heartbeats have told this node of its own log.
type logLoss struct {
	leader, term uint64 // of the heartbeats
	since        uint64 // tick of the first
	heartbeats   int    // in a row; 0: the other fields mean nothing
}

func (s *losses) leaderChanged() { clear(s.lost) }

// enoughHeartbeats is the least number of heartbeats before the node gives up.
const enoughHeartbeats = 3

// heartbeat notes whether the log has the entry at the index of a leader's heartbeat, and returns
// why this node gives up.
func (s *losses) heartbeat(m *pb.Message, fits bool) error {
	l := &s.own
	if fits {
		l.heartbeats = 0
		return nil
	}
	s.postRaft(&pb.Message{
		Type: pb.MsgAppResp.Enum(), To: m.From, From: new(s.cfg.ID), Term: m.Term,
		Index: m.Commit, Reject: new(true), RejectHint: new(s.last),
	})
	if l.heartbeats == 0 || l.leader != m.GetFrom() || l.term != m.GetTerm() {
		*l = logLoss{leader: m.GetFrom(), term: m.GetTerm(), since: s.ticks}
	}
	l.heartbeats++
	if l.heartbeats < enoughHeartbeats || s.ticks-l.since+1 < uint64(s.cfg.ElectionTick) {
		return nil
	}
	return fmt.Errorf("%w: node %d leads, and knows that node %d has acknowledged index %d of group %d, but the log here ends at %d. "+
		"What this node has voted is forgotten: remove it from the group, at another node, and start a new node with another id and an empty directory",
		ErrLogLost, l.leader, s.cfg.ID, m.GetCommit(), s.cfg.Group, s.last)
}

// told reports whether a message tells this leader that a member's log ends before an
// index acknowledged by the member. The message is not for the core.
func (s *losses) told(m *pb.Message) bool {
	from, typ := m.GetFrom(), m.GetType()
	if !s.leads() || m.GetTerm() != s.state.Term || typ != pb.MsgAppResp && typ != pb.MsgHeartbeatResp {
		return false
	}
	if !m.GetReject() {
		delete(s.lost, from)
		return false
	}
	_, progress := s.core.Members()
	p, ok := progress[from]
	if !ok || m.GetRejectHint() >= p.Match {
		return false
	}
	if !s.lost[from] {
		if s.lost == nil {
			s.lost = map[uint64]bool{}
		}
		s.lost[from] = true
		s.cfg.Logger.Errorf("rawnode: node %d has lost its log: it ends at index %d, and %d was acknowledged: remove the node, and add a new one with another id", from, m.GetRejectHint(), p.Match)
	}
	return true
}
