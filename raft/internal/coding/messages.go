// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Raft's own messages, as they arrive and leave: their news for coding, and the fields
// filled by coding. And messages between nodes that code.

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
			if o := c.observer(); o != nil {
				o.HeartbeatAnswered(from, c.now())
			}
		}
	case pb.MsgVoteResp, pb.MsgPreVoteResp:
		c.heardVote(m)
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

// heardVote notes a vote of a member that does not code, and so will not answer this node as the
// winner of the election.
func (c *Coder) heardVote(m *pb.Message) {
	if m.GetType() != pb.MsgVoteResp || m.GetReject() || m.GetTerm() != c.raft.Term() || saysThatItCodes(m) || m.Context != nil {
		return // members of earlier versions have a Context and no term there
	}
	if a := c.accounts.of[m.GetFrom()]; a != nil {
		a.votedPlain = true
	}
	if c.recovery != nil {
		c.recovery.said[m.GetFrom()] = true
	}
}

// isAnswer reports whether a message answers this leader.
func (c *Coder) isAnswer(m *pb.Message) bool {
	return c.leads != nil && m.GetTerm() == c.raft.Term() && m.GetFrom() != c.id && c.follows(m.GetFrom())
}

// heard notes a sign of life of a member.
func (c *Coder) heard(id uint64) {
	if c.accounts.heard(id) {
		c.wants.puller.Heard(id)
	}
}

// Handled hears of a message of another node, after Raft has taken the message.
func (c *Coder) Handled(m *pb.Message) {
	switch m.GetType() {
	case pb.MsgApp:
		f := &c.intake.fresh
		unpushed := c.pushes.share(f.ents, f.envs, m.GetCommit())
		c.passes.noted()
		*f = accepted{}
		// A member that was away need not wait for its next tick. While units are on order, the answer is the time to
		// ask for more, so that many entries share a question.
		if unpushed && c.wants.puller.Idle() {
			c.wants.pull()
		}
	case pb.MsgHeartbeat:
		if c.raft.Role() == extend.Follower {
			c.reports.news()
		}
	case pb.MsgProp:
		if c.leads != nil {
			c.leads.changes.work() // the proposal may be a change
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

// Unreachable hears that the host could not reach a member.
func (c *Coder) Unreachable(id uint64) {
	if id != c.id && c.follows(id) {
		a := c.accounts.account(id)
		a.unreachable, a.lostTick = true, c.ticks
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
		m.Context = c.reports.tell()
		if m.GetReject() {
			return
		}
		m.LogTerm = m.Term // this node's: see saysThatItCodes
		if m.Index != nil {
			c.acked = ecraft.ID{Term: c.raft.Term(), Index: max(m.GetIndex(), c.acked.Index)}
		}
	case pb.MsgVote, pb.MsgPreVote:
		if m.Context == nil {
			m.Context = c.reports.report().encode()
		}
	case pb.MsgVoteResp, pb.MsgPreVoteResp:
		if k := c.log.Committed(); m.GetReject() {
			if term, err := c.log.Term(k); err == nil {
				m.LogTerm, m.Index = &term, &k
			}
		} else {
			m.LogTerm = new(c.raft.Term()) // see saysThatItCodes
		}
		if to != c.id {
			m.Context = c.membersInForce()
		}
	case pb.MsgApp:
		if ents := m.GetEntries(); len(ents) > 0 {
			c.leads.sent(to, ents)
		}
	case pb.MsgHeartbeat:
		if o := c.observer(); o != nil && c.leads != nil {
			o.HeartbeatSent(to, c.now())
		}
	}
}

// Check refuses a message about units that no correct node sends.
func (c *Coder) Check(m *pb.Message) error {
	if t := m.GetType(); t != MsgUnits && t != MsgUnitsAsk {
		return nil
	}
	if len(m.GetContext()) != 1 || m.GetTerm() != 0 {
		return fmt.Errorf("message of type %d from %x has term %d and a context of %d bytes; it must have term 0 and 1 byte",
			m.GetType(), m.GetFrom(), m.GetTerm(), len(m.GetContext()))
	}
	if n := len(m.GetEntries()); n > maxRecovered && m.GetType() == MsgUnitsAsk {
		return fmt.Errorf("%x asks for units of %d entries; at most %d can be", m.GetFrom(), n, maxRecovered)
	}
	for i, e := range m.GetEntries() {
		if e.GetTerm() == 0 || e.GetTerm() > maxTerm || i > 0 && e.GetIndex() <= m.GetEntries()[i-1].GetIndex() {
			return fmt.Errorf("message of type %d from %x has entry %d/%d out of order or without a term",
				m.GetType(), m.GetFrom(), e.GetTerm(), e.GetIndex())
		}
	}
	return nil
}

// Claims reports whether a message is the question of a node that has won an
// election. Its term is in LogTerm.
func (c *Coder) Claims(m *pb.Message) bool {
	return m.GetType() == MsgUnitsAsk && len(m.GetContext()) == 1 && m.GetContext()[0] == forRecover
}

// Step takes a message about units that Check lets pass.
func (c *Coder) Step(m *pb.Message) error {
	switch m.GetType() {
	case MsgUnitsAsk:
		return c.stepAsk(m)
	case MsgUnits:
		return c.stepUnits(m)
	}
	return nil // another extension's
}

// stepUnits takes units, or headers, from another node.
func (c *Coder) stepUnits(m *pb.Message) error {
	from := m.GetFrom()
	if m.GetContext()[0] == forReading { // also from members to come
		if c.leads != nil {
			c.leads.call.readingArrived(m)
		}
		return nil
	}
	if !c.follows(from) && !c.raft.Electorate().Expects(from) {
		return nil // no member, as far as is known here
	}
	c.heard(from)
	purpose := m.GetContext()[0]
	if purpose == forRecover {
		if c.recovery != nil {
			return c.recovery.answered(m)
		}
		return nil
	}
	if purpose == forHeaderAnswer {
		if l := c.leads; l != nil {
			return l.check.headersArrived(m)
		}
		return nil
	}
	switch purpose {
	case forPass:
		return c.passed(m)
	case forZone:
		if c.learns(c.id) {
			c.passOn(m)
		}
		return c.passed(m)
	case forPush:
		c.passOn(m)
	}
	var refused error
	for _, e := range m.GetEntries() {
		refused = errors.Join(refused, c.take(from, e))
		if purpose == forAnswer {
			c.wants.puller.Answered(from, idOf(e))
		}
	}
	if c.leads != nil {
		c.leads.unblock()
	}
	if purpose == forAnswer {
		c.wants.pull() // there may be more to ask for
	}
	return refused
}

// take takes the units of one entry.
func (c *Coder) take(from uint64, e *pb.Entry) error {
	if c.recovery != nil {
		return c.recovery.take(from, e)
	}
	return c.payloads.take(from, e)
}

// stepAsk answers a question for units.
func (c *Coder) stepAsk(m *pb.Message) error {
	from := m.GetFrom()
	switch m.GetContext()[0] {
	case forAsk:
		c.heard(from)
		e := c.unitsMessage(MsgUnits, from, forAnswer)
		if err := c.payloads.answer(e, m); err != nil {
			return err
		}
		c.send(e)
	case forHeaderAsk:
		c.answerHeaders(m)
	case forReading:
		c.answerReading(m)
	case forRelease:
		if from == c.raft.Lead() && m.GetLogTerm() == c.raft.Term() {
			c.reports.askForSnapshot(m.GetIndex())
		}
	case forRecover:
		return c.answerWinner(m)
	}
	return nil
}

// answerWinner answers the winner of an election, in whose term this node is.
func (c *Coder) answerWinner(m *pb.Message) error {
	c.heard(m.GetFrom())
	answer := c.unitsMessage(MsgUnits, m.GetFrom(), forRecover)
	answer.Index = new(c.log.Last().Index)
	if err := c.payloads.answer(answer, m); err != nil {
		return err
	}
	c.vouch(answer)
	return nil
}
