// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// storageAppend returns the work of the host's log writer for rd, with the messages to
// deliver after the work: the vouching ones, and the report to this node. nil if there
// is nothing to write or wait for.
func (r *raft) storageAppend(rd Ready) *pb.Message {
	if len(rd.Entries) == 0 && IsEmptyHardState(rd.HardState) && rd.Snapshot == nil && len(r.vouching) == 0 {
		return nil
	}
	e := r.message(pb.MsgStorageAppend, LocalAppendThread)
	m := &e.msg
	// All of the hard state or nothing: the host writes the fields as a unit.
	if hs := rd.HardState; IsEmptyHardState(hs) {
		m.Term = nil
	} else {
		e.withTerm(hs.GetTerm()).withCommit(hs.GetCommit())
		m.Vote = new(hs.GetVote())
	}
	m.Entries, m.Snapshot = rd.Entries, rd.Snapshot
	// Acknowledgements to this node come before the report: acknowledging looks up
	// terms of entries, and the report drops these entries from memory.
	m.Responses = r.vouching[:len(r.vouching):len(r.vouching)]
	if resp := r.storageAppendResp(&envelope{}, rd); resp != nil {
		m.Responses = append(m.Responses, resp)
	}
	return m
}

// storageAppendResp returns, in e, the report by which the host says: rd, and everything
// handed out before rd, is durable. nil if this node needs no report.
//
// The report names the last entry of the log, also when rd has none, and the present
// term. Entry and term together replace a count of writes:
//
//   - Entries x, then y, then x again may be handed out for the same index, by leaders
//     of terms 1, 2, 3. When the first write of x is reported, a look at the log shows
//     x in place, but Storage is about to hold y. So a node believes a report only in
//     the term of its making: a leader replaces entries only in a new term.
//   - A change of term therefore voids reports. But a new term is a new hard state to
//     write, and that write's report names the log's end again.
func (r *raft) storageAppendResp(e *envelope, rd Ready) *pb.Message {
	pending := len(r.log.tail.entries) > 0
	if !pending && rd.Snapshot == nil {
		return nil
	}
	r.address(e, pb.MsgStorageAppendResp, r.id)
	e.from = LocalAppendThread
	if pending {
		e.withEntryID(r.log.last())
	}
	e.msg.Snapshot = rd.Snapshot
	return &e.msg
}

// storageApply returns the work of the host's state machine, with the report to deliver
// after the work. The term is 0, because committed entries belong to no term. The report
// has the log's own slice, because the host may change its slice.
func (r *raft) storageApply(ents, own []*pb.Entry) *pb.Message {
	e := r.message(pb.MsgStorageApply, LocalApplyThread).withTerm(0)
	e.msg.Entries = ents
	e.msg.Responses = []*pb.Message{r.storageApplyResp(&envelope{}, own)}
	return &e.msg
}

func (r *raft) storageApplyResp(e *envelope, ents []*pb.Entry) *pb.Message {
	r.address(e, pb.MsgStorageApplyResp, r.id).withTerm(0)
	e.from = LocalApplyThread
	e.msg.Entries = ents
	return &e.msg
}
