// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Step lets a message arrive. m must not change afterwards.
func (r *raft) Step(m *pb.Message) error {
	if r.log.err != nil {
		return r.log.err
	}
	if err := r.checkShape(m); err != nil {
		return err
	}
	peers := !IsLocalMsg(m.GetType()) && m.GetType() != pb.MsgTransferLeader // else From is whom it is about
	if peers {
		r.extension.Arrives(m)
	}
	if t := m.GetTerm(); t < r.term && t != 0 {
		r.answerOutdated(m)
	} else if t <= r.term || r.catchUp(m) {
		if err := r.dispatch(m); err != nil {
			r.settle()
			return err
		}
		if peers {
			r.extension.Handled(m)
		}
	}
	r.extension.Poll()
	r.settle()
	return r.log.err
}

// maxTerm is beyond any term reachable by elections. Higher terms are refused, because
// a term near the end of the range would leave no room for elections.
const maxTerm = 1 << 62

// maxIndex is likewise beyond any index: only a snapshot could take a log there.
const maxIndex = 1 << 62

// checkShape refuses a message unreadable as its type.
func (r *raft) checkShape(m *pb.Message) error {
	if t := m.GetTerm(); t > maxTerm {
		return fmt.Errorf("%w: %s from %x has term %d; at most %d can be", ErrMalformedMessage, m.GetType(), m.GetFrom(), t, uint64(maxTerm))
	}
	if m.GetFrom() == r.id && !fromSelf(m) {
		return fmt.Errorf("%w: %s says that it is from %x, which is this node", ErrMalformedMessage, m.GetType(), r.id)
	}
	switch m.GetType() {
	case pb.MsgApp:
		return checkEntries(ecraft.ID{Term: m.GetLogTerm(), Index: m.GetIndex()}, m.GetEntries(), m.GetTerm())
	case pb.MsgSnap:
		if id := snapshotID(m.GetSnapshot()); id.Term > maxTerm || id.Index > maxIndex {
			return fmt.Errorf("%w: snapshot %v from %x; term and index can be at most %d", ErrMalformedMessage, id, m.GetFrom(), uint64(maxIndex))
		}
	case pb.MsgProp:
		if len(m.GetEntries()) == 0 {
			return fmt.Errorf("%w: MsgProp from %x has no entries", ErrMalformedMessage, m.GetFrom())
		}
		if slices.Contains(m.GetEntries(), nil) {
			return fmt.Errorf("%w: MsgProp from %x has a nil entry", ErrMalformedMessage, m.GetFrom())
		}
	case pb.MsgReadIndex:
		if len(m.GetEntries()) == 0 {
			return fmt.Errorf("%w: MsgReadIndex from %x has no entry for its context", ErrMalformedMessage, m.GetFrom())
		}
	case MsgUnits, MsgUnitsAsk, MsgLeases:
		return malformed(r.extension.Check(m))
	case pb.MsgVote, pb.MsgPreVote:
		if m.GetTerm() == 0 {
			return fmt.Errorf("%w: %s from %x has no term", ErrMalformedMessage, m.GetType(), m.GetFrom())
		}
	case pb.MsgHeartbeatResp:
		if n := len(m.GetContext()); n != 0 && n < readRoundSize {
			return fmt.Errorf("%w: MsgHeartbeatResp from %x has a context of %d bytes; none or at least %d are needed",
				ErrMalformedMessage, m.GetFrom(), n, readRoundSize)
		}
	}
	return nil
}

// malformed wraps an extension's error about a message.
func malformed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMalformedMessage, err)
}

// fromSelf reports whether a node may get such a message from itself: requests of its
// host, and messages after a wait for durability: votes, acknowledgements, and messages
// let pass by an extension.
func fromSelf(m *pb.Message) bool {
	switch t := m.GetType(); t {
	case pb.MsgProp, pb.MsgReadIndex, pb.MsgTransferLeader, pb.MsgForgetLeader, MsgLeases:
		return true
	case pb.MsgAppResp, pb.MsgVoteResp, pb.MsgPreVoteResp:
		return !m.GetReject()
	default:
		return IsLocalMsg(t)
	}
}

// catchUp handles a message of a later term than ours, and reports whether the message
// is to be handled further.
func (r *raft) catchUp(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgVote, pb.MsgPreVote:
		if r.refusesCampaigns() && !isTransfer(m) {
			r.cfg.Logger.Infof("raft: node %x hears from its leader %x and ignores %s of %x for term %d",
				r.id, r.lead, m.GetType(), m.GetFrom(), m.GetTerm())
			return false
		}
		if m.GetType() == pb.MsgPreVote {
			return true // only a question about the later term
		}
	case pb.MsgPreVoteResp:
		if !m.GetReject() {
			return true // the term we asked about; ours when enough say yes
		}
	}
	r.cfg.Logger.Infof("raft: node %x learns of term %d by %s from %x", r.id, m.GetTerm(), m.GetType(), m.GetFrom())
	lead := None
	if isFromLeader(m.GetType()) {
		lead = m.GetFrom()
	}
	r.becomeFollower(m.GetTerm(), lead)
	return true
}

// isFromLeader reports whether only the leader of a message's term sends it.
func isFromLeader(t pb.MessageType) bool {
	return t == pb.MsgApp || t == pb.MsgHeartbeat || t == pb.MsgSnap
}

// answerOutdated handles a message of a term before ours. Most are late and
// mean nothing any more.
func (r *raft) answerOutdated(m *pb.Message) {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat:
		// With CheckQuorum or PreVote our campaigns may be ignored, so this leader
		// would never learn of our higher term, nor we get its entries. Any answer
		// shows the leader our term and makes it step down.
		if r.cfg.CheckQuorum || r.cfg.PreVote {
			r.vouch(r.message(pb.MsgAppResp, m.GetFrom()))
		}
	case pb.MsgPreVote:
		// Must be answered: a node without PreVote may have raised the term with a
		// shorter log, and no node could win if the node with the longer log went on
		// asking about a lower term.
		r.vouch(r.message(pb.MsgPreVoteResp, m.GetFrom()).withReject())
	case pb.MsgStorageAppendResp:
		// The entries may have been replaced since, and written again, so the report
		// does not prove them durable. A snapshot is committed state and valid in any
		// term.
		if s := m.GetSnapshot(); s != nil {
			r.snapshotApplied(s)
		}
	}
}

// dispatch handles a message whose term is ours, or which has none, or is a
// question about a later one.
func (r *raft) dispatch(m *pb.Message) error {
	switch m.GetType() {
	case pb.MsgHup:
		if r.cfg.PreVote {
			r.campaign(preElection)
		} else {
			r.campaign(election)
		}
	case pb.MsgVote, pb.MsgPreVote:
		r.handleVote(m)
	case pb.MsgUnreachable:
		r.extension.Unreachable(m.GetFrom())
		return r.role.step(m)
	case MsgUnits, MsgUnitsAsk:
		if r.extension.Claims(m) {
			if answer, err := r.hearWinner(m); err != nil || !answer {
				return err
			}
		}
		return malformed(r.extension.Step(m))
	case MsgLeases:
		return malformed(r.extension.Step(m))
	case pb.MsgReadIndex:
		if !r.extension.TakeRead(m) {
			return r.role.step(m)
		}
	case pb.MsgStorageAppendResp:
		r.extension.Stored()
		if i := m.GetIndex(); i != 0 {
			r.log.written(ecraft.ID{Term: m.GetLogTerm(), Index: i})
		}
		if s := m.GetSnapshot(); s != nil {
			r.snapshotApplied(s)
		}
	case pb.MsgStorageApplyResp:
		r.entriesApplied(m.GetEntries())
	default:
		return r.role.step(m)
	}
	return nil
}

// entriesApplied is called after the host has applied the entries.
func (r *raft) entriesApplied(ents []*pb.Entry) {
	if len(ents) == 0 {
		return
	}
	r.appliedTo(ents[len(ents)-1].GetIndex(), encodingSize(ents))
	if l := r.leading(); l != nil {
		l.uncommitted -= min(payloadSize(ents), l.uncommitted)
	}
}
