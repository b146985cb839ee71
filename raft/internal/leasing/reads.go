// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft/internal/extend"
)

// read is a request that waits here.
type read struct {
	msg   *pb.Message
	spans []leases.Span
	// index must be committed before the read is answered; 0 if the read waits for this
	// node to be stable, or for a leader to be known.
	index uint64
	until leases.Instant
	// local says that a lease of this node answers the read, without another node.
	local bool
}

// forgetAfter is for how many election timeouts a leader holds a read of another node, which asks again if it still
// waits: a leader with its lease may commit nothing for long.
const forgetAfter = 16

// A read ends in one of two ways: with an index, once the index is committed; or at the
// leader, as every read does without leases. An uncommitted index may never be
// committed, because its entry may be cut. So the host is told committed indexes only,
// and waits until the index is applied.

// own reports whether a read is of this node's host.
func (x *Leases) own(m *pb.Message) bool { return m.GetFrom() == 0 || m.GetFrom() == x.id }

// TakeRead takes a read if this node may answer it from its own log, now or soon.
func (x *Leases) TakeRead(m *pb.Message) bool {
	own := x.own(m)
	if !own && !x.leads {
		return false // the read was meant for a leader
	}
	now := x.now()
	r := read{msg: m, spans: x.spansOf(m), until: now + leases.Instant(x.cfg.Hold)}
	if own && x.node.Tunes() {
		for _, s := range orAll(r.spans) {
			x.node.CountRead(s)
		}
	}
	if x.serve(now, &r) {
		return true
	}
	if own && !x.leads && x.node.MayServe(r.spans...) {
		x.counts.Waited++
		x.reads = append(x.reads, r)
		return true
	}
	return false
}

// serve holds a read until its index, or answers the read, if this node is stable.
func (x *Leases) serve(now leases.Instant, r *read) bool {
	i, ok := x.node.ReadIndex(now, r.spans...)
	if !ok {
		return false
	}
	if x.leads {
		x.counts.Leader++
	} else {
		x.counts.Local++
	}
	r.index, r.local = uint64(i), true
	x.hold(*r)
	return true
}

// hold answers a read at its index, as soon as the index is committed.
func (x *Leases) hold(r read) {
	if r.index <= x.log.Committed() {
		x.answer(r)
		return
	}
	x.counts.Held++
	x.reads = append(x.reads, r)
}

func (x *Leases) answer(r read) {
	if r.local && x.cfg.Served != nil && x.own(r.msg) {
		x.cfg.Served(r.msg.GetEntries()[0].GetData(), x.leads)
	}
	x.Ask(extend.Effect{Do: extend.Answer, Msg: r.msg, ID: ecraft.ID{Index: r.index}})
}

// LeaderIndex returns the index that a leader takes for a read.
func (x *Leases) LeaderIndex(m *pb.Message) uint64 {
	return uint64(x.node.LeaderIndex(x.spansOf(m)...))
}

// HoldRead takes a read confirmed by a leader, if the read's index is not committed.
func (x *Leases) HoldRead(m *pb.Message, index uint64) bool {
	if index <= x.log.Committed() {
		return false
	}
	x.hold(read{msg: m, spans: x.spansOf(m), index: index, until: x.now()})
	return true
}

// spansOf returns the spans of a request; none: every key.
func (x *Leases) spansOf(m *pb.Message) []leases.Span {
	if len(m.GetContext()) == 0 {
		return nil
	}
	spans, err := leases.ParseSpans(m.GetContext())
	if err != nil {
		return nil // every key is never wrong
	}
	return spans
}

// orAll returns spans for the tuner: every key for none.
func orAll(spans []leases.Span) []leases.Span {
	if spans == nil {
		return []leases.Span{{}}
	}
	return spans
}

// releaseReads answers reads whose index is committed.
func (x *Leases) releaseReads(committed uint64) {
	x.reads = slices.DeleteFunc(x.reads, func(r read) bool {
		done := r.index != 0 && r.index <= committed
		if done {
			x.answer(r)
		}
		return done
	})
}

// cutReads sends reads elsewhere whose index may never be committed.
func (x *Leases) cutReads(from uint64) {
	for i := range x.reads {
		if r := &x.reads[i]; r.index >= from && r.index > 0 {
			r.index, r.local, r.until = 0, false, x.now()
			x.counts.Cut++
		}
	}
}

// retryReads answers reads that waited for this node to be stable, and sends reads to
// the leader after a long wait. Without a leader such reads wait for another while.
func (x *Leases) retryReads(now leases.Instant) {
	if len(x.reads) == 0 {
		return
	}
	list := x.reads
	x.reads = nil
	for _, r := range list {
		late, while := now >= r.until, leases.Instant(x.cfg.Leases.ElectionTimeout)
		switch {
		case r.index > 0 && x.leads && !x.own(r.msg) && now >= r.until+forgetAfter*while:
		case r.index > 0 && (x.leads || !late):
			x.reads = append(x.reads, r) // a leader could only send the read to itself
		case r.index == 0 && x.serve(now, &r):
		case !late || x.lead == 0 && now < r.until+while:
			x.reads = append(x.reads, r)
		default:
			x.counts.Redirected++
			x.Ask(extend.Effect{Do: extend.Redirect, Msg: r.msg})
		}
	}
}

// Permit returns what this node permits now; see [leases.Node.Permit]. A commit index that
// Raft holds below the permit's index does not matter, because a reader waits until the
// index is applied.
func (x *Leases) Permit(former *leases.Permit) *leases.Permit { return x.node.Permit(former) }

// CountPermitted counts reads that a permit answered, and tells the tuner of their spans.
func (x *Leases) CountPermitted(local, leader uint64, spans []leases.Usage) {
	x.counts.Local += local
	x.counts.Leader += leader
	for _, u := range spans {
		x.node.CountReads(u.Span, u.Reads)
	}
}

// Counts count reads and messages.
type Counts struct {
	Local       uint64 // reads taken by this node as a responder
	Leader      uint64 // and as a leader, by its lease
	Waited      uint64 // reads that waited until this node was stable
	Held        uint64 // reads that waited until their index was committed
	Cut         uint64 // of these, reads whose index may never be committed
	Redirected  uint64 // reads that went to the leader after a wait
	NoteCommits uint64 // times at which notes moved the commit index
	Refused     uint64 // unreadable messages
}

// Status returns the state of leases.
func (x *Leases) Status() (s leases.Status, waiting int, counts Counts) {
	return x.node.Status(x.now()), len(x.reads), x.counts
}

// Node is for the calls of operators; Poll has to follow.
func (x *Leases) Node() (*leases.Node, leases.Instant) { return x.node, x.now() }
