// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/electorate"
)

// propose appends the entries to the log and sends them out, all or none.
func (l *leader) propose(ents []*pb.Entry) error {
	switch {
	case l.members.Progress(l.id) == nil:
		return ErrProposalDropped // removed, and about to find out
	case l.transferee != None:
		return ErrProposalDropped // the log must come to rest
	case l.late():
		return ErrProposalDropped // others can do better
	}
	if held, err := l.holdBack(ents); held || err != nil {
		return err
	}
	last := l.log.last().Index
	own := make([]*pb.Entry, len(ents))
	for i, e := range ents {
		id := ecraft.ID{Term: l.term, Index: last + 1 + uint64(i)}
		if !l.admitConfChange(e, id.Index) {
			// Applying the empty entry tells the proposer that the change was refused.
			e = &pb.Entry{Type: pb.EntryNormal.Enum()}
		}
		own[i] = copyShell(e, id)
		own[i].Data = e.Data // until it is sealed
	}
	if !l.reserve(own) {
		l.tellFull()
		return ErrProposalDropped
	}
	l.extension.Seal(own)
	l.append(own...)
	l.broadcastAppend()
	return nil
}

// tellFull tells the operator that a proposal is dropped, once in an election timeout.
func (l *leader) tellFull() {
	if !l.toldFull {
		l.cfg.Logger.Warningf("raft: node %x drops a proposal: %d bytes are uncommitted, the limit is %d", l.id, l.uncommitted, l.cfg.MaxUncommittedEntriesSize)
	}
	l.toldFull = true
}

// append adds entries of this term to the log. This node counts as holding the entries
// once they are durable, by an acknowledgement to itself.
func (l *leader) append(ents ...*pb.Entry) {
	l.log.appendAfter(l.log.last(), ents)
	l.vouch(l.message(pb.MsgAppResp, l.id).withIndex(l.log.last().Index))
}

// reserve counts the entries as uncommitted if they fit the limit. With nothing
// uncommitted, entries of any size fit. Empty entries, which begin a term or end a
// joint configuration, always fit.
func (l *leader) reserve(ents []*pb.Entry) bool {
	size := payloadSize(ents)
	if l.uncommitted > 0 && size > 0 && l.uncommitted+size > entryPayloadSize(l.cfg.MaxUncommittedEntriesSize) {
		return false
	}
	l.uncommitted += size
	return true
}

// admitConfChange reports whether a proposed entry, to stand at index, may be appended
// unchanged: the entry is no configuration change, or a change that fits the present
// configuration.
func (l *leader) admitConfChange(e *pb.Entry, index uint64) bool {
	if !electorate.IsChange(e) {
		return true
	}
	cc, err := electorate.Decode(e)
	if err != nil {
		return false // not reached: see holdBack
	}
	if why := l.objection(cc); why != "" {
		l.cfg.Logger.Infof("raft: node %x refuses configuration change %s at %s: %s", l.id, DescribeConfChange(cc), l.members.Config(), why)
		return false
	}
	l.confChangeAt = index
	if cc.LeaveJoint() {
		l.leaveAt = index
	}
	return true
}

// objection says why a configuration change does not fit; empty if the change fits, or
// need not be checked.
func (l *leader) objection(cc *pb.ConfChangeV2) string {
	joint := l.members.IsJoint()
	leaves := len(cc.Changes) == 0
	switch {
	case l.cfg.DisableConfChangeValidation:
	case l.confChangeAt > l.log.applied:
		return fmt.Sprintf("there may be one at index %d that is not applied yet (applied index %d)", l.confChangeAt, l.log.applied)
	case joint && !leaves:
		return "the present configuration is joint and must be left first"
	case !joint && leaves:
		return "there is no joint configuration to leave"
	case l.held != nil:
		return errAnotherWaits.Error()
	case l.members.Tracks():
		// The change may have waited here (mustWait), or at a host that reports changes
		// before they are in force, while the members changed. In the log it would stop
		// every node.
		if _, _, err := l.members.After(cc); err != nil {
			return err.Error()
		}
	}
	return ""
}
