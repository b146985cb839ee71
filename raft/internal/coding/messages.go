// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Raft's own messages, as they arrive and leave: their news for coding, and the fields
// filled by coding.

// Arrives hears of a message of another node, before Raft takes the message.
func (c *Coder) Arrives(m *pb.Message) {
	from := m.GetFrom()
	c.heard(from)
	switch m.GetType() {
	case pb.MsgAppResp:
		if c.isAnswer(m) && m.GetIndex() <= c.log.Last().Index {
			c.leads.heardAppend(m)
		}
	case pb.MsgHeartbeatResp:
		if c.isAnswer(m) {
			if o := c.leads.observer(); o != nil {
				o.HeartbeatAnswered(from, c.now())
			}
		}
	case pb.MsgVoteResp, pb.MsgPreVoteResp:
		if c.raft.Role() != extend.Candidate {
			return
		}
		if m.GetReject() {
			// A refusal names the last entry that the voter knows to be committed, and
			// a committed entry is committed in any term: see Leaves.
			c.Ask(extend.Effect{Do: extend.Commit, ID: ecraft.ID{Term: m.GetLogTerm(), Index: m.GetIndex()}})
		}
		c.learnMembers(m)
	}
}

// isAnswer reports whether a message answers this leader.
func (c *Coder) isAnswer(m *pb.Message) bool {
	return c.leads != nil && m.GetTerm() == c.raft.Term() && m.GetFrom() != c.id && c.follows(m.GetFrom())
}

// follows reports whether a node is a member here or, at a leader, one to come.
func (c *Coder) follows(id uint64) bool {
	_, ok := c.raft.Progress(id)
	return ok
}

// heardAppend takes the report and the times of an answer to an append.
func (l *leading) heardAppend(m *pb.Message) {
	l.reported(m)
	if m.GetReject() {
		return
	}
	a, now := l.account(m.GetFrom()), l.now()
	if m.GetIndex() > l.match(m.GetFrom()) {
		a.ackedAt = now
	}
	if o := l.observer(); o != nil {
		o.Acked(m.GetFrom(), m.GetIndex(), a.held, now)
	}
}

// Handled hears of a message of another node, after Raft has taken the message.
func (c *Coder) Handled(m *pb.Message) {
	switch m.GetType() {
	case pb.MsgApp:
		c.share(c.fresh.ents, c.fresh.envs, m.GetCommit())
		c.fresh = accepted{}
	case pb.MsgHeartbeat:
		if c.raft.Role() == extend.Follower {
			c.reportNews()
		}
	case pb.MsgProp:
		if c.leads != nil {
			c.leads.workOnChange() // the proposal may be a change
		}
	case pb.MsgAppResp:
		if c.isAnswer(m) && !m.GetReject() {
			c.leads.unblockOne(m.GetFrom())
		}
	case pb.MsgHeartbeatResp:
		if c.isAnswer(m) {
			c.leads.askLagging(m.GetFrom())
		}
	}
}

// askLagging sends an append, if need be without entries, to a member that by its last
// report lacks payloads of acknowledged entries: the report may be old, and the answer
// has a new one.
func (l *leading) askLagging(id uint64) {
	a := l.accounts[id]
	pr, _ := l.raft.Progress(id)
	if a == nil || !a.capable || !a.known || a.completed >= pr.Match {
		return
	}
	if sent := pr.Match < l.log.Last().Index || pr.State == tracker.StateProbe; !sent {
		l.Ask(extend.Effect{Do: extend.Probe, To: id})
	}
}

// Unreachable hears that the host could not reach a member.
func (c *Coder) Unreachable(id uint64) {
	if c.follows(id) {
		c.account(id).unreachable = true
	}
}

// Leaves fills fields of a message of Raft that is about to leave, or notes the
// message.
//
// An acknowledgement carries this node's report, and so does a request for a vote. The
// answer carries the members in force: see settled.go.
//
// A refused vote carries the last entry that this node knows to be committed, applied or
// not, for the following case. A change demotes or removes a voter; this voter is the first to hear
// that the change is committed, and has the longest log; then others die. The members
// that are left have the change in their logs, do not know that the change is
// committed, count votes by the members before the change, and so need the vote of the
// demoted member. The demoted member refuses, because its log is longer, and may not
// campaign itself: no node could lead, although a majority of the members in force is
// alive. A candidate whose log has the very entry agrees with the voter up to there,
// and may trust the voter as a follower trusts its leader.
func (c *Coder) Leaves(m *pb.Message) {
	to := m.GetTo()
	switch m.GetType() {
	case pb.MsgAppResp:
		if to == c.id {
			return
		}
		c.told, c.toldTick = c.report(), c.ticks
		m.Context = c.told.encode()
		if !m.GetReject() && m.Index != nil {
			c.acked = ecraft.ID{Term: c.raft.Term(), Index: max(m.GetIndex(), c.acked.Index)}
		}
	case pb.MsgVote, pb.MsgPreVote:
		if m.Context == nil {
			m.Context = c.report().encode()
		}
	case pb.MsgVoteResp, pb.MsgPreVoteResp:
		if k := c.log.Committed(); m.GetReject() {
			if term, err := c.log.Term(k); err == nil {
				m.LogTerm, m.Index = &term, &k
			}
		}
		if to != c.id {
			m.Context = c.membersInForce()
		}
	case pb.MsgApp:
		if ents := m.GetEntries(); len(ents) > 0 {
			c.leads.sent(to, ents)
		}
	case pb.MsgHeartbeat:
		if o := c.observer(); o != nil {
			o.HeartbeatSent(to, c.now())
		}
	}
}

// sent notes that an append with entries leaves for a member.
func (l *leading) sent(to uint64, ents []*pb.Entry) {
	last := ents[len(ents)-1].GetIndex()
	l.sentTo[to] = max(l.sentTo[to], last)
	if o := l.observer(); o != nil {
		o.Sent(to, last, extend.EncodedSize(ents...)-l.saved, l.now())
	}
}

// observer returns a leader's policy, if the policy learns.
func (c *Coder) observer() ecraft.Observer {
	if c.leads == nil {
		return nil
	}
	return c.leads.observer()
}
