// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft/internal/extend"
)

// A leader without coding changes the members as upstream's library does. Such a leader
// does not know that members hold a committed payload in part, and may leave too few of
// them. So a node that does not read envelopes gets no vote while some member may still
// need a coded entry.
//
// A leader that codes holds a change that gives votes, until each new voter has answered
// that the voter reads envelopes now. Earlier reports do not count, because
// the node may have been restarted. If a voter does not answer for an election timeout,
// an empty entry takes the place of the change, as of every refused change. But a host
// that checks changes itself may have found that other changes fit behind this one:
// there the change goes on waiting, and others are refused. A member that may need a
// coded entry itself does not vote for a candidate that does not report that it reads
// envelopes: such a candidate had its vote before, and was restarted without coding.

// rollCall is the question to voters to come whether they read envelopes.
type rollCall struct {
	// since is the tick of the first question, which also names the question.
	since int
	// warned says that a voter to come has been silent for long.
	warned bool
	// said are the voters that have answered; nil before the question.
	said map[uint64]bool
}

// inNeed returns the members that may still need a coded entry, in order of id.
func (l *leading) inNeed() (ids []uint64) {
	last := l.spans.last()
	for _, id := range l.raft.Electorate().Everyone() {
		if l.releasedBy(id) < last {
			ids = append(ids, id)
		}
	}
	return ids
}

// silent returns the voters to come without an answer that the voter reads envelopes.
// The leader itself, possibly demoted before, reads envelopes.
func (l *leading) silent(voters []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool { return id == l.id || l.call.said[id] })
}

// votersRead reports whether the voters that a change brings may have a vote.
func (l *leading) votersRead(voters []uint64) bool {
	return len(l.silent(voters)) == 0 || len(l.inNeed()) == 0
}

// callVoters asks the voters of a waiting change whether the voter reads envelopes, and
// refuses the change if a voter is silent for an election timeout.
func (l *leading) callVoters(change *extend.Change) {
	if change == nil {
		l.call = rollCall{}
		return
	}
	if l.raft.Electorate().MayFollow() != nil || l.votersRead(change.New) {
		return
	}
	call := &l.call
	if call.said == nil {
		*call = rollCall{since: l.ticks, said: map[uint64]bool{}}
	}
	for _, id := range l.silent(change.New) {
		m := l.unitsMessage(MsgUnitsAsk, id, forReading)
		m.Index, m.Commit = new(l.raft.Term()), new(uint64(call.since))
		l.send(m)
	}
	l.seek(0) // entries that were not looked at may be plain
	if l.ticks-call.since < l.cfg.ElectionTick {
		return
	}
	if !call.warned {
		call.warned = true
		l.cfg.Logger.Warningf("raft: node %x keeps a configuration change back: %s", l.id, l.waitsFor())
	}
	if !change.Insists {
		l.Ask(extend.Effect{Do: extend.Refuse})
	}
}

// answerReading tells a leader that this node reads envelopes with its clear prefix.
func (c *Coder) answerReading(m *pb.Message) {
	answer := c.unitsMessage(MsgUnits, m.GetFrom(), forReading)
	answer.Index, answer.Commit = new(m.GetIndex()), new(m.GetCommit())
	answer.RejectHint = new(uint64(c.cfg.ClearPrefix))
	c.send(answer)
}

// readingArrived takes the answer.
func (l *leading) readingArrived(m *pb.Message) {
	call := &l.call
	if call.said == nil || m.GetIndex() != l.raft.Term() || m.GetCommit() != uint64(call.since) || m.GetRejectHint() != uint64(l.cfg.ClearPrefix) {
		return // to an earlier question, or with another clear prefix
	}
	call.said[m.GetFrom()] = true
	l.Ask(extend.Effect{Do: extend.Retry})
}

// waitsFor says why a configuration change waits; empty if none waits.
func (l *leading) waitsFor() string {
	change := l.raft.Held()
	switch {
	case change == nil || change.Leaves:
		return ""
	case l.raft.Electorate().MayFollow() != nil:
		return l.raft.Electorate().MayFollow().Error()
	case l.votersRead(change.New):
		return errUncovered.Error()
	}
	return l.unread(change.New).Error()
}

// unread refuses a change because voters that it brings have not said that they read envelopes.
func (l *leading) unread(voters []uint64) error {
	return fmt.Errorf("voters to come %x have not said that they read coded entries with a clear prefix of %d bytes, and %x may still need entries up to %d; "+
		"start the new voters with the same Coding where they can be reached before they are members, or make them learners first; "+
		"or have all hosts compact their logs up to there", l.silent(voters), l.cfg.ClearPrefix, l.inNeed(), l.spans.last())
}

// MayVote reports whether this node may vote for a candidate: while the node may need a
// committed coded entry, only if the candidate reports that it reads envelopes like
// this node's. A leader that hands over has checked that report.
func (c *Coder) MayVote(m *pb.Message, wished bool) bool {
	if wished || c.spans.lastUpTo(c.log.Committed()) <= c.released() {
		return true
	}
	p, err := parseReport(m.GetContext())
	return err == nil && p.prefix == uint64(c.cfg.ClearPrefix)
}
