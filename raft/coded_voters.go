// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// A leader without coding changes the members as upstream's library does: it knows
// nothing of members that hold a committed payload in part, and may leave too few of
// them. So who does not read envelopes gets no vote while some member may still need a
// coded entry.
//
// A leader that codes keeps a change back that gives votes, until each of the new voters
// has answered that it reads envelopes: now, whatever it said before, as it may have
// been restarted. If one does not answer for an election timeout, an empty entry takes
// the place of the change, as of every change that is refused. But a host that checks
// changes itself may have found that others fit behind it: there it goes on waiting, and
// others are refused. And a member that may need a coded entry itself does not vote for a
// candidate that does not say that it reads them: one that had its vote before, and was
// restarted without coding.

// rollCall asks voters to come whether they read envelopes.
type rollCall struct {
	// since is the tick at which they were first asked; also what names the question.
	since int
	// warned says that somebody has been silent for long.
	warned bool
	// said are those that answered.
	said map[uint64]bool
}

// newVoters returns who is to have a vote by a change that has none in force, in order
// of id; none if the change does not fit.
func (l *leader) newVoters(cc *pb.ConfChangeV2) []uint64 {
	t := l.members
	t.Config, t.Progress = l.members.Clone(), cloneProgress(l.members.Progress)
	cfg, _, err := changed(t, cc)
	if err != nil {
		return nil
	}
	ids := cfg.Voters.IDs()
	maps.DeleteFunc(ids, func(id uint64, _ struct{}) bool { return isVoter(l.members.Config, id) })
	return slices.Sorted(maps.Keys(ids))
}

// inNeed returns the members that may still need a coded entry, in order of id.
func (l *leader) inNeed() (ids []uint64) {
	last := l.coded.spans.last()
	for _, id := range l.coded.everyone() {
		if l.releasedBy(id) < last {
			ids = append(ids, id)
		}
	}
	return ids
}

// silent returns those of the voters to come that have not said that they read
// envelopes.
func (l *leader) silent(voters []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool { return l.enc.call.said[id] })
}

// votersRead reports whether the voters that a change brings may have a vote. If it is
// the one that waits, those are asked that have not said that they read envelopes.
func (l *leader) votersRead(cc *pb.ConfChangeV2) bool {
	silent := l.silent(l.newVoters(cc))
	if len(silent) == 0 || len(l.inNeed()) == 0 {
		return true
	}
	if call := &l.enc.call; l.enc.waiting != nil {
		if call.said == nil {
			*call = rollCall{since: l.coded.ticks, said: map[uint64]bool{}}
		}
		for _, id := range silent {
			e := l.coded.unitsMessage(MsgUnitsAsk, id, forReading)
			l.send(e.withIndex(l.term).withCommit(uint64(call.since)))
		}
		l.coded.seek(0) // what was not looked at may all be plain
	}
	return false
}

// answerReading tells a leader that this node reads envelopes with its clear prefix.
func (c *coded) answerReading(m *pb.Message) {
	e := c.unitsMessage(MsgUnits, m.GetFrom(), forReading).withIndex(m.GetIndex()).withCommit(m.GetCommit())
	e.msg.RejectHint = new(uint64(c.opt.ClearPrefix))
	c.r.send(e)
}

// readingArrived takes the answer.
func (l *leader) readingArrived(m *pb.Message) {
	call := &l.enc.call
	if call.said == nil || m.GetIndex() != l.term || m.GetCommit() != uint64(call.since) || m.GetRejectHint() != uint64(l.coded.opt.ClearPrefix) {
		return // to an earlier question, or it reads others
	}
	call.said[m.GetFrom()] = true
	l.retryChange()
}

// givesUp reports whether the change that waits is to be refused: voters to come have
// not answered for an election timeout, although it matters. That is logged once.
func (l *leader) givesUp(cc *pb.ConfChangeV2) bool {
	call := &l.enc.call
	if call.said == nil || l.coded.ticks-call.since < l.cfg.ElectionTick {
		return false
	}
	silent, need := l.silent(l.newVoters(cc)), l.inNeed()
	if len(silent) == 0 || len(need) == 0 {
		return false
	}
	if !call.warned {
		call.warned = true
		l.logger.Warningf("raft: node %x keeps configuration change %s back: %s", l.id, DescribeConfChange(cc), l.waitsFor())
	}
	return !l.cfg.DisableConfChangeValidation
}

// waitsFor says what a configuration change waits for; empty if none waits.
func (l *leader) waitsFor() string {
	if l.enc == nil || l.enc.waiting == nil {
		return ""
	}
	cc, err := decodeConfChange(l.enc.waiting)
	if err != nil || len(l.coded.pending.changes) > 0 {
		return "the configuration change before it is not in force yet"
	}
	silent, need := l.silent(l.newVoters(cc)), l.inNeed()
	if len(silent) == 0 || len(need) == 0 {
		return "coded entries that are committed are not safe under it yet"
	}
	return fmt.Sprintf("voters to come %x have not said that they read coded entries with a clear prefix of %d bytes, and %x may still need entries up to %d; "+
		"start the new voters with the same Coding where they can be reached before they are members, or make them learners first; "+
		"or have all hosts compact their logs up to there", silent, l.coded.opt.ClearPrefix, need, l.coded.spans.last())
}

// mayNeed reports whether this node may need a coded entry that is committed.
func (c *coded) mayNeed() bool {
	return c.spans.lastUpTo(c.r.log.committed) > c.released()
}

// deniesVote reports whether this node withholds its vote from a candidate that does
// not say that it reads envelopes like this node's. A leader that hands over has
// looked at that.
func (c *coded) deniesVote(m *pb.Message) bool {
	if c == nil || isTransfer(m) || !c.mayNeed() {
		return false
	}
	p, err := parseReport(m.GetContext())
	return err != nil || p.prefix != uint64(c.opt.ClearPrefix)
}

// campaigns returns what a candidate says of itself as it asks for votes; nil without
// coding.
func (c *coded) campaigns() []byte {
	if c == nil {
		return nil
	}
	return c.report().encode()
}
