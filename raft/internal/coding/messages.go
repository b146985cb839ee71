// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Raft's own messages, as they arrive and leave: what they tell beside Raft, and
// what they carry for coding.

// Arrives hears of a message of another node, before Raft looks at it.
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
		if m.GetReject() && c.raft.Role() == extend.Candidate {
			// A voter that refuses says what is committed, and what is committed is so
			// in any term: see Leaves.
			c.Ask(extend.Effect{Do: extend.Commit, ID: ecraft.ID{Term: m.GetLogTerm(), Index: m.GetIndex()}})
		}
	}
}

// isAnswer reports whether a message answers this leader.
func (c *Coder) isAnswer(m *pb.Message) bool {
	return c.leads != nil && m.GetTerm() == c.raft.Term() && m.GetFrom() != c.id && c.raft.Members().Progress[m.GetFrom()] != nil
}

// heardAppend takes what an answer to an append says beside Raft.
func (l *leading) heardAppend(m *pb.Message) {
	l.reported(m)
	if m.GetReject() {
		return
	}
	a, now := l.account(m.GetFrom()), l.now()
	if m.GetIndex() > l.raft.Members().Progress[m.GetFrom()].Match {
		a.ackedAt = now
	}
	if o := l.observer(); o != nil {
		o.Acked(m.GetFrom(), m.GetIndex(), a.held, now)
	}
}

// Handled hears of a message of another node, after Raft has taken it.
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
			c.leads.workOnChange() // it may have come with the proposal
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

// askLagging sends a member that, as far as it last said, lacks payloads of what it
// has acknowledged an append, also one without entries: that may be old news, and
// the answer tells.
func (l *leading) askLagging(id uint64) {
	a, pr := l.accounts[id], l.raft.Members().Progress[id]
	if a == nil || !a.capable || !a.known || a.completed >= pr.Match {
		return
	}
	if sent := pr.Match < l.log.Last().Index || pr.State == tracker.StateProbe; !sent {
		l.Ask(extend.Effect{Do: extend.Probe, To: id})
	}
}

// Unreachable hears that the host could not reach a member.
func (c *Coder) Unreachable(id uint64) {
	if c.raft.Members().Progress[id] != nil {
		c.account(id).unreachable = true
	}
}

// Leaves completes a message of Raft that is about to leave, or notes it.
//
// An acknowledgement carries this node's report, and so does a request for a vote. A refused vote carries the last
// entry that this node knows to be committed: say that a change demotes or removes a
// voter, which is the first to hear that the change is committed, and has the longest
// log; then others die. The members that are left have the change in their logs, do
// not know that it is committed, and count votes by the members before it. So they
// need the vote of the one that was demoted. That one refuses, as its log is longer,
// and may not campaign itself: nobody could lead, although a majority of the members
// in force is there. A candidate whose log has the very entry agrees with the voter
// up to there, and takes its word as it takes a leader's.
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

// observer returns a leader's policy if it learns.
func (c *Coder) observer() ecraft.Observer {
	if c.leads == nil {
		return nil
	}
	return c.leads.observer()
}
