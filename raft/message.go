// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// envelope is a message with the targets of its optional fields, in one allocation. The
// presence of a field is part of the wire format; each method below sets a field and
// makes the field present.
type envelope struct {
	msg                                    pb.Message
	typ                                    pb.MessageType
	to, from, term, logTerm, index, commit uint64
}

// message begins a message of this node, in its term, to another.
func (r *raft) message(typ pb.MessageType, to uint64) *envelope {
	return r.address(&envelope{}, typ, to)
}

// address is message in given memory.
func (r *raft) address(e *envelope, typ pb.MessageType, to uint64) *envelope {
	*e = envelope{typ: typ, to: to, from: r.id, term: r.term}
	e.msg.Type, e.msg.To, e.msg.From, e.msg.Term = &e.typ, &e.to, &e.from, &e.term
	return e
}

func (e *envelope) withTerm(term uint64) *envelope {
	e.term = term
	return e
}

func (e *envelope) withIndex(i uint64) *envelope {
	e.index = i
	e.msg.Index = &e.index
	return e
}

func (e *envelope) withEntryID(id ecraft.ID) *envelope {
	e.logTerm = id.Term
	e.msg.LogTerm = &e.logTerm
	return e.withIndex(id.Index)
}

func (e *envelope) withCommit(i uint64) *envelope {
	e.commit = i
	e.msg.Commit = &e.commit
	return e
}

func (e *envelope) withReject() *envelope {
	e.msg.Reject = new(true)
	return e
}

// send puts a message into the outbox, to leave at once.
func (r *raft) send(e *envelope) {
	r.extension.Leaves(&e.msg)
	r.outbox = append(r.outbox, &e.msg)
}

// vouch sends a message that must not leave before all present state of this node is
// durable, because the message vouches for the state.
//
// Refusals could leave at once in most cases. Refusals wait too, because they are rare
// and the exceptions are not proven.
func (r *raft) vouch(e *envelope) {
	r.extension.Leaves(&e.msg)
	r.vouching = append(r.vouching, &e.msg)
}

// forward passes a message on to the leader. Message types with a term get the term of
// this node.
func (r *raft) forward(m *pb.Message) {
	m.To = new(r.lead)
	if m.GetFrom() == None {
		m.From = new(r.id)
	}
	if t := m.GetType(); t != pb.MsgProp && t != pb.MsgReadIndex {
		m.Term = new(r.term)
	}
	r.outbox = append(r.outbox, m)
}

// localRequest is the message for a call of the host, with its one entry if any, in one
// allocation. Fields set here are present on the wire when the message is forwarded.
type localRequest struct {
	msg     pb.Message
	typ     pb.MessageType
	from    uint64
	reject  bool
	entry   pb.Entry
	entries [1]*pb.Entry
}

func request(typ pb.MessageType) *localRequest {
	q := &localRequest{typ: typ}
	q.msg.Type = &q.typ
	return q
}

func (q *localRequest) withFrom(id uint64) *localRequest {
	q.from = id
	q.msg.From = &q.from
	return q
}

func (q *localRequest) withData(data []byte) *localRequest {
	q.entry.Data = data
	q.entries[0] = &q.entry
	q.msg.Entries = q.entries[:]
	return q
}

// withReject sets the flag of a failed snapshot.
func (q *localRequest) withReject(reject bool) *localRequest {
	q.reject = reject
	q.msg.Reject = &q.reject
	return q
}
