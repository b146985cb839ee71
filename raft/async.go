// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// storageAppend returns what the host's log writer is to do for rd, with the
// messages to deliver when it is done: those that vouch for what is written,
// and the report to this node. nil if there is nothing to write or wait for.
func (r *raft) storageAppend(rd Ready) *pb.Message {
	if len(rd.Entries) == 0 && IsEmptyHardState(rd.HardState) && rd.Snapshot == nil && len(r.vouching) == 0 {
		return nil
	}
	e := r.message(pb.MsgStorageAppend, LocalAppendThread)
	m := &e.msg
	// All of the hard state or nothing, so that the host can put it together.
	if hs := rd.HardState; IsEmptyHardState(hs) {
		m.Term = nil
	} else {
		e.withTerm(hs.GetTerm()).withCommit(hs.GetCommit())
		m.Vote = new(hs.GetVote())
	}
	m.Entries, m.Snapshot = rd.Entries, rd.Snapshot
	// Acknowledgements to this node come before the report: they look up terms
	// of entries that the report takes out of memory.
	m.Responses = r.vouching[:len(r.vouching):len(r.vouching)]
	if resp := r.storageAppendResp(rd); resp != nil {
		m.Responses = append(m.Responses, resp)
	}
	return m
}

// storageAppendResp returns the report that rd, and everything handed out
// before it, is durable. nil if this node need not hear of that.
//
// The report names the last entry of the log, also when rd has none, and the
// present term. That keeps two threads apart without counting writes:
//
//   - Entries x, then y, then x again may be handed out for the same index, by
//     leaders of terms 1, 2, 3. When the first write of x is reported, a look
//     at the log shows x in place, but Storage is about to hold y. A report is
//     therefore believed in the term it was made in only: whoever replaces
//     entries has a new term.
//   - So reports get lost when the term changes. But a new term is a new hard
//     state to write, and that write's report names the log's end again.
func (r *raft) storageAppendResp(rd Ready) *pb.Message {
	pending := len(r.log.tail.entries) > 0
	if !pending && rd.Snapshot == nil {
		return nil
	}
	e := r.message(pb.MsgStorageAppendResp, r.id)
	e.from = LocalAppendThread
	if pending {
		e.withEntryID(r.log.last())
	}
	e.msg.Snapshot = rd.Snapshot
	return &e.msg
}

// storageApply returns what the host's state machine is to do, with the report
// to deliver when it is done. Committed entries belong to no term: it is 0.
func (r *raft) storageApply(ents []*pb.Entry) *pb.Message {
	e := r.message(pb.MsgStorageApply, LocalApplyThread).withTerm(0)
	e.msg.Entries = ents
	e.msg.Responses = []*pb.Message{r.storageApplyResp(ents)}
	return &e.msg
}

func (r *raft) storageApplyResp(ents []*pb.Entry) *pb.Message {
	e := r.message(pb.MsgStorageApplyResp, r.id).withTerm(0)
	e.from = LocalApplyThread
	e.msg.Entries = ents
	return &e.msg
}
