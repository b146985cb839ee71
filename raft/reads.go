// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"encoding/binary"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// A linearizable read needs no log entry (thesis 6.4). The leader notes its commit
// index when the read arrives, makes sure that it still leads, and answers with the
// index. A node that has applied the log up to the index may read its state.
//
// The leader makes sure by asking a quorum. Reads are numbered as they arrive; the
// context of a heartbeat is the number of the newest read so far, its round, and an
// answer with this context confirms all reads up to the round. So one round of
// heartbeats serves any number of reads, and any later round confirms a read whose
// heartbeats are lost.

// ReadState is a confirmed read, which the host may answer once the entries up to Index
// are applied.
type ReadState struct {
	// Index is the commit index of the leader at the arrival of the read.
	Index uint64
	// RequestCtx is what the host passed to ReadIndex, to tell reads apart.
	RequestCtx []byte
}

const readRoundSize = 8 // bytes of a round in a heartbeat's context, little endian

// pendingRead is a request and its index: the commit index at its arrival.
type pendingRead struct {
	req   *pb.Message
	index uint64
}

// readQueue is the reads of a leadership waiting for a quorum.
type readQueue struct {
	waiting []pendingRead
	// done is the number of reads confirmed so far: waiting[0] has number done+1.
	done uint64
	// acked is the newest round answered by each member.
	acked map[uint64]uint64
}

// newest returns the number of the last read.
func (q *readQueue) newest() uint64 { return q.done + uint64(len(q.waiting)) }

// round returns the context of a heartbeat sent now: nil when no read waits.
func (q *readQueue) round() []byte {
	if len(q.waiting) == 0 {
		return nil
	}
	return binary.LittleEndian.AppendUint64(make([]byte, 0, readRoundSize), q.newest())
}

// ack records a member's answer to a round.
func (q *readQueue) ack(from, round uint64) {
	if q.acked == nil {
		q.acked = map[uint64]uint64{}
	}
	q.acked[from] = max(q.acked[from], round)
}

// AckedIndex lets quorum find the newest round answered by a majority.
func (q *readQueue) AckedIndex(voter uint64) (quorum.Index, bool) {
	round, ok := q.acked[voter]
	return quorum.Index(round), ok
}

// confirm removes and returns the reads up to a round, which a majority of each set of
// voters has answered.
func (q *readQueue) confirm(round uint64) []pendingRead {
	if round <= q.done {
		return nil
	}
	n := min(round-q.done, uint64(len(q.waiting)))
	confirmed := q.waiting[:n]
	q.waiting, q.done = q.waiting[n:], q.done+n
	return confirmed
}

// readIndex takes a read request of this node or of another.
//
// A new leader may not know of all entries committed in earlier terms, because a commit
// index need not be durable. Reads wait until the leader has committed an entry of its
// own term, also after a restart of a group's only voter.
func (l *leader) readIndex(m *pb.Message) {
	if l.log.holds(ecraft.ID{Term: l.term, Index: l.log.committed}) {
		l.startRead(m)
	} else {
		if l.earlyReads == nil {
			l.earlyReads = new([]*pb.Message)
		}
		*l.earlyReads = append(*l.earlyReads, m)
	}
}

func (l *leader) startRead(m *pb.Message) {
	index := l.extension.LeaderIndex(m)
	switch {
	case l.cfg.ReadOnlyOption == ReadOnlyLeaseBased || l.members.IsAlone(l.id):
		l.readAllowed(m, index)
		return
	case l.cfg.ReadOnlyOption != ReadOnlySafe:
		return // no option: upstream, which does not refuse it either, answers no read
	}
	l.reads.waiting = append(l.reads.waiting, pendingRead{req: m, index: index})
	l.reads.ack(l.id, l.reads.newest())
	l.broadcastHeartbeat()
}

// releaseEarlyReads starts the reads from before the first commit of the term.
func (l *leader) releaseEarlyReads() {
	if l.earlyReads == nil || !l.log.holds(ecraft.ID{Term: l.term, Index: l.log.committed}) {
		return
	}
	early := *l.earlyReads
	l.earlyReads = nil
	for _, m := range early {
		l.startRead(m)
	}
}

// readsAcked takes a member's answer to a heartbeat with a round of reads.
func (l *leader) readsAcked(from uint64, ctx []byte) {
	l.reads.ack(from, binary.LittleEndian.Uint64(ctx))
	for _, r := range l.reads.confirm(l.members.Confirmed(&l.reads)) {
		l.readAllowed(r.req, r.index)
	}
}

// readAllowed answers a read at this leader's index, once the index is committed.
func (l *leader) readAllowed(req *pb.Message, index uint64) {
	if !l.extension.HoldRead(req, index) {
		l.answerRead(req, index)
	}
}

// answerRead gives a committed index to the asking node.
func (r *raft) answerRead(req *pb.Message, index uint64) {
	if from := req.GetFrom(); from == None || from == r.id {
		r.readConfirmed(req, index)
		return
	}
	e := r.message(pb.MsgReadIndexResp, req.GetFrom()).withIndex(index)
	e.msg.Entries = req.GetEntries()
	r.send(e)
}

// readConfirmed tells this node's host of a confirmed read.
func (r *raft) readConfirmed(m *pb.Message, index uint64) {
	r.readStates = append(r.readStates, ReadState{Index: index, RequestCtx: m.GetEntries()[0].GetData()})
}
