// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// envelope is a message and what its optional fields point to, in one
// allocation. Which fields are present is part of the wire format; the methods
// below set a field and make it present.
type envelope struct {
	msg                                    pb.Message
	typ                                    pb.MessageType
	to, from, term, logTerm, index, commit uint64
}

// message begins a message of this node, in its term, to another.
func (r *raft) message(typ pb.MessageType, to uint64) *envelope {
	e := &envelope{typ: typ, to: to, from: r.id, term: r.term}
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

func (e *envelope) withEntryID(id entryID) *envelope {
	e.logTerm = id.term
	e.msg.LogTerm = &e.logTerm
	return e.withIndex(id.index)
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

// send puts a message into the outbox: it may leave at once.
func (r *raft) send(e *envelope) {
	r.coder.Leaves(&e.msg)
	r.outbox = append(r.outbox, &e.msg)
}

// vouch sends a message that must not leave before what it vouches for is
// durable: everything that this node holds by now.
//
// Refusals could leave at once in most cases. They are rare, and it is not
// proven for all, so they wait too.
func (r *raft) vouch(e *envelope) {
	r.coder.Leaves(&e.msg)
	r.vouching = append(r.vouching, &e.msg)
}

// forward passes a message on to the leader. A term is that of this node, for
// the types that have one.
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

// localRequest is a message by which the host's call enters the state machine,
// and the one entry it may carry, in one allocation. Which fields are present
// shows when it is forwarded.
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

// withReject sets the flag that says that a snapshot failed to arrive.
func (q *localRequest) withReject(reject bool) *localRequest {
	q.reject = reject
	q.msg.Reject = &q.reject
	return q
}
