// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/wire"
)

// send hands a message of the core to the send stage; an append of more entries than a
// message may have as several, which a leader may do at any time.
func (r *Replica) send(m *pb.Message) {
	if r.stall.silenced(m) {
		if m.GetType() == pb.MsgSnap { // else the core would wait for the end of a snapshot that nobody sends, also once the disk gets on
			r.core.ReportSnapshot(m.GetTo(), false)
		}
		return
	}
	for m.GetType() == pb.MsgApp && len(m.GetEntries()) > wire.MaxEntries {
		var first *pb.Message
		first, m = divided(m)
		r.send(first)
	}
	if m.GetType() == pb.MsgReadIndex && m.GetFrom() != r.cfg.ID {
		return // held by a leader for another node until the leader stepped down: the node asks again
	}
	if m.GetType() == pb.MsgSnap {
		r.sendSnapshot(m)
		return
	}
	m, repeated := r.repeats.cut(m)
	if repeated {
		r.count.Repeats++
	}
	body := r.body(m)
	if m.GetType() == pb.MsgApp {
		bytes := -body.Saves
		for _, e := range m.GetEntries() {
			bytes += len(e.GetData())
		}
		r.count.AppendBytesOut += uint64(bytes)
	}
	if !r.acks.put(m, r.ticks) {
		r.count.LateAcks++
		return
	}
	if m.GetType() == pb.MsgHeartbeatResp {
		r.postRaft(r.acks.take(m.GetTo()))
	}
	r.post(m.GetTo(), body)
}

// divided returns an append of the first wire.MaxEntries entries of m, and one of the
// others.
func divided(m *pb.Message) (first, others *pb.Message) {
	part := func(term, index *uint64, entries []*pb.Entry) *pb.Message {
		return &pb.Message{
			Type: m.Type, To: m.To, From: m.From, Term: m.Term,
			LogTerm: term, Index: index, Entries: entries, Commit: m.Commit,
		}
	}
	last := m.Entries[wire.MaxEntries-1]
	return part(m.LogTerm, m.Index, m.Entries[:wire.MaxEntries]), part(last.Term, last.Index, m.Entries[wire.MaxEntries:])
}

// postRaft posts a message of Raft; nil is none.
func (r *Replica) postRaft(m *pb.Message) {
	if m != nil {
		r.post(m.GetTo(), r.body(m))
	}
}

// askLogEnd asks a node where its log ends, with a number that the answer repeats.
func (r *Replica) askLogEnd(to, number uint64) {
	r.post(to, wire.LogEnd{Boot: r.reads.boot, Number: number, First: r.founding.digest})
}

func (r *Replica) post(to uint64, body wire.Body) {
	r.count.MessagesOut++
	r.out.Sends = append(r.out.Sends, wire.Message{Group: r.cfg.Group, From: r.cfg.ID, To: to, Body: body})
}

// deliver takes the responses of a storage thread to their receivers.
func (r *Replica) deliver(responses []*pb.Message) {
	for _, m := range responses {
		if m.GetTo() != r.cfg.ID {
			r.send(m)
			continue
		}
		r.step(m)
	}
}

// body is what carries a message of the core.
func (r *Replica) body(m *pb.Message) wire.Raft {
	b := wire.Raft{Message: m, Digests: wire.Digests{First: r.founding.digest, Settings: r.settings.digest}}
	if c := r.cfg.Coding; c != nil && c.LateSeal && m.GetType() == pb.MsgApp {
		b.OwnForm, b.ClearPrefix = true, c.ClearPrefix
		for _, e := range m.GetEntries() {
			if o := ecraft.NewOutgoing(e.GetData(), c.ClearPrefix, r.cfg.ID, m.GetTo()); o != nil {
				b.Saves += len(e.GetData()) - o.Len()
				o.Free()
			}
		}
	}
	return b
}

// sendTurn lets the messages of a turn leave. Of what is dropped the core hears
// before the next turn.
func (r *Replica) sendTurn() {
	var dropped []wire.Message
	r.out.Sends = r.holding.turn(r.out.Sends, r.now, r.last)
	r.count.JoinedAppends = r.holding.joined
	r.out.Sends, dropped = r.sends.turn(r.out.Sends, r.now, r.cfg.Stopwatch)
	for _, m := range dropped {
		delete(r.repeats, m.To) // the message has not left
		r.Unreachable(m.To)
	}
}
