// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// A node whose log was lost has forgotten what it voted and acknowledged. Started
// under its old id, it is a danger to its group: it may vote twice in a term, and it
// counts as one of those that have what is committed.
//
// Its leader's heartbeats give it away. They carry an index that the node itself has
// acknowledged to this leader, and the log ends before it. (A leader that came later
// knows of no acknowledgement, and brings the node up to date as if it were new.
// Nobody can tell then.) Each such heartbeat is answered, so that the leader knows
// what the node is. The node gives up if for an election timeout a leader's heartbeats
// are all like that: a faulty peer that says so does not stop a node that leads, or that
// hears of its leader.
type logLoss struct {
	leader, term uint64 // of the heartbeats
	since        uint64 // tick of the first
	heartbeats   int    // that came in a row; 0: the rest is of no meaning
}

// enoughHeartbeats is how many there must be at least.
const enoughHeartbeats = 3

// heartbeatFits looks at a leader's heartbeat, and whether the log has what it speaks
// of.
func (r *Replica) heartbeatFits(m *pb.Message, fits bool) {
	l := &r.loss
	if fits {
		l.heartbeats = 0
		return
	}
	r.post(m.GetFrom(), r.body(&pb.Message{
		Type: pb.MsgAppResp.Enum(), To: m.From, From: new(r.cfg.ID), Term: m.Term,
		Index: m.Commit, Reject: new(true), RejectHint: new(r.last),
	}))
	if l.heartbeats == 0 || l.leader != m.GetFrom() || l.term != m.GetTerm() {
		*l = logLoss{leader: m.GetFrom(), term: m.GetTerm(), since: r.ticks}
	}
	l.heartbeats++
	if l.heartbeats < enoughHeartbeats || r.ticks-l.since+1 < uint64(r.cfg.ElectionTick) {
		return
	}
	r.fail(fmt.Errorf("%w: node %d leads, and knows that node %d has acknowledged index %d of group %d, but the log here ends at %d. "+
		"What this node has voted is forgotten: remove it from the group, at another node, and start a new node with another id and an empty directory",
		ErrLogLost, l.leader, r.cfg.ID, m.GetCommit(), r.cfg.Group, r.last))
}

// toldOfLoss reports whether a message tells this leader that a member's log ends
// before what it has acknowledged. Such a message is nothing for the core.
func (r *Replica) toldOfLoss(m *pb.Message) bool {
	from, typ := m.GetFrom(), m.GetType()
	if !r.leads() || m.GetTerm() != r.state.Term || typ != pb.MsgAppResp && typ != pb.MsgHeartbeatResp {
		return false
	}
	if !m.GetReject() {
		delete(r.lostLogs, from)
		return false
	}
	_, progress := r.core.Members()
	p, ok := progress[from]
	if !ok || m.GetRejectHint() >= p.Match {
		return false
	}
	if !r.lostLogs[from] {
		r.lostLogs[from] = true
		r.cfg.Logger.Errorf("rawnode: node %d has lost its log: it ends at index %d, and %d was acknowledged: remove the node, and add a new one with another id", from, m.GetRejectHint(), p.Match)
	}
	return true
}
