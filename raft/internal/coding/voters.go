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
	*accounts
	// since is the tick of the first question, which also names the question.
	since int
	// warned says that a voter to come has been silent for long.
	warned bool
	// said are the voters that have answered; nil before the question.
	said map[uint64]bool
}

// silent returns the voters to come without an answer that the voter reads envelopes.
// The leader itself, possibly demoted before, reads envelopes.
func (call *rollCall) silent(voters []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool { return id == call.id || call.said[id] })
}

// votersRead reports whether the voters that a change brings may have a vote.
func (call *rollCall) votersRead(voters []uint64) bool {
	return len(call.silent(voters)) == 0 || len(call.inNeed()) == 0
}

// ask asks the voters of a waiting change whether the voter reads envelopes, and
// refuses the change if a voter is silent for an election timeout.
func (call *rollCall) ask(change *extend.Change) {
	if change == nil {
		call.since, call.warned, call.said = 0, false, nil
		return
	}
	if call.raft.Electorate().MayFollow() != nil || call.votersRead(change.New) {
		return
	}
	if call.said == nil {
		call.since, call.warned, call.said = call.ticks, false, map[uint64]bool{}
	}
	for _, id := range call.silent(change.New) {
		m := call.unitsMessage(MsgUnitsAsk, id, forReading)
		m.Index, m.Commit = new(call.raft.Term()), new(uint64(call.since))
		call.send(m)
	}
	call.ledger.seek(call.node, 0) // entries that were not looked at may be plain
	if call.ticks-call.since < call.cfg.ElectionTick {
		return
	}
	if !call.warned {
		call.warned = true
		call.cfg.Logger.Warningf("raft: node %x keeps a configuration change back: %s", call.id, call.waitsFor())
	}
	if !change.Insists {
		call.Ask(extend.Effect{Do: extend.Refuse})
		call.ask(nil) // a change that comes in this tick has voters of its own
	}
}

// answerReading tells a leader that this node reads envelopes with its clear prefix.
func (n *node) answerReading(m *pb.Message) {
	answer := n.unitsMessage(MsgUnits, m.GetFrom(), forReading)
	answer.Index, answer.Commit = new(m.GetIndex()), new(m.GetCommit())
	answer.RejectHint = new(uint64(n.cfg.ClearPrefix))
	n.send(answer)
}

// readingArrived takes the answer.
func (call *rollCall) readingArrived(m *pb.Message) {
	if call.said == nil || m.GetIndex() != call.raft.Term() || m.GetCommit() != uint64(call.since) || m.GetRejectHint() != uint64(call.cfg.ClearPrefix) {
		return // to an earlier question, or with another clear prefix
	}
	call.said[m.GetFrom()] = true
	call.Ask(extend.Effect{Do: extend.Retry})
}

// waitsFor says why a configuration change waits; empty if none waits.
func (call *rollCall) waitsFor() string {
	change := call.raft.Held()
	switch {
	case change == nil || change.Leaves:
		return ""
	case call.raft.Electorate().MayFollow() != nil:
		return call.raft.Electorate().MayFollow().Error()
	case call.votersRead(change.New):
		return errUncovered.Error()
	}
	return call.unread(change.New).Error()
}

// unread refuses a change because voters that it brings have not said that they read envelopes.
func (call *rollCall) unread(voters []uint64) error {
	return fmt.Errorf("voters to come %x have not said that they read coded entries with a clear prefix of %d bytes, and %x may still need entries up to %d; "+
		"start the new voters with the same Coding where they can be reached before they are members, or make them learners first; "+
		"or have all hosts compact their logs up to there", call.silent(voters), call.cfg.ClearPrefix, call.inNeed(), call.ledger.spans.last())
}
