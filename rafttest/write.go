// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// This file is a host's work on a Ready.

// serve does the node's requests, until the node asks for nothing or waits for
// the disk.
func (p *coreProcess) serve() {
	for !p.writing && p.s.failure == nil && p.rn.HasReady() {
		rd := p.rn.Ready()
		var hs *hardState
		if !raft.IsEmptyHardState(rd.HardState) {
			h := hardStateOf(rd.HardState)
			hs = &h
		}
		p.s.check.ready(p.n, rd.Snapshot, rd.Entries, hs)
		p.hurried.follow(rd.Snapshot, rd.Entries)
		for _, rs := range rd.ReadStates {
			p.readConfirmed(rs)
		}
		p.handed(rd.CommittedEntries)
		if p.async {
			p.dispatch(rd.Messages)
		} else {
			p.writeThenSend(rd, hs)
		}
	}
}

// write puts the state to keep into the disk's stream: all or nothing, or in
// the order of a host with a write for each record.
func (p *coreProcess) write(snap *pb.Snapshot, ents []*pb.Entry, hs *hardState) {
	if !raft.IsEmptySnap(snap) {
		p.s.faults.happens(p.n, momentSnapshot)
	}
	if slices.ContainsFunc(ents, func(e *pb.Entry) bool { return e.GetType() != pb.EntryNormal }) {
		p.s.faults.happens(p.n, momentLogged)
	}
	p.n.disk.writeAll(snap, ents, hs, !p.s.plan.oneByOne)
}

// writeAll writes a node's durable state.
func (d *disk) writeAll(snap *pb.Snapshot, ents []*pb.Entry, hs *hardState, atomic bool) {
	var records []record
	if !raft.IsEmptySnap(snap) {
		records = append(records, record{snapshot: snap})
	}
	for _, e := range ents {
		records = append(records, record{entry: e})
	}
	if hs != nil {
		records = append(records, record{state: hs})
	}
	for i, r := range records {
		r.more = atomic && i+1 < len(records)
		d.write(r)
	}
}

// writeThenSend is the turn of a host without storage threads. A leader's may send first (thesis 10.2.1).
func (p *coreProcess) writeThenSend(rd raft.Ready, hs *hardState) {
	later := rd.Messages
	if p.s.plan.sendsFirst && p.rn.BasicStatus().RaftState == raft.StateLeader {
		p.sendAll(later)
		later = nil
	}
	p.write(rd.Snapshot, rd.Entries, hs)
	p.writing = true
	finish := func() {
		p.sendAll(later)
		p.restore(rd.Snapshot)
		p.advance(rd)
	}
	// MustSync speaks of entries, term and vote; a snapshot is for the host to
	// make durable.
	if !rd.MustSync && raft.IsEmptySnap(rd.Snapshot) {
		finish()
		return
	}
	if p.s.opts.Bug == ackBeforeSync {
		p.n.sync(func() {})
		finish()
		return
	}
	p.n.sync(func() {
		finish()
		p.serve()
	})
}

// dispatch sends messages, those for the local threads to their queues.
func (p *coreProcess) dispatch(msgs []*pb.Message) {
	for _, m := range msgs {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			p.appends.waiting = append(p.appends.waiting, m)
		case raft.LocalApplyThread:
			p.handsEarly(m.GetEntries())
			p.applyLater(applyWork{m: m})
		default:
			p.send(m)
		}
	}
	p.startAppends()
	p.startApplies()
}

// appendQueue is the work of the log writer.
type appendQueue struct {
	waiting, writing []*pb.Message
	busy             bool
}

// deepQueue is the number of writes that wait when even a host with a sync for
// each write writes all together. Otherwise the host would never catch up with
// messages that come in faster than its syncs.
const deepQueue = 8

// batchOf returns how many of the waiting writes one sync serves.
func (p *plan) batchOf(waiting int) int {
	if p.groupCommit || waiting > deepQueue {
		return waiting
	}
	return 1
}

// startAppends writes the waiting messages, one or all, and syncs once.
func (p *coreProcess) startAppends() {
	q := &p.appends
	if q.busy || len(q.waiting) == 0 {
		return
	}
	n := p.s.plan.batchOf(len(q.waiting))
	batch := q.waiting[:n:n]
	q.waiting, q.writing = q.waiting[n:], batch
	q.busy = true
	mustSync := false
	for _, m := range batch {
		p.write(m.GetSnapshot(), m.GetEntries(), stateIn(m))
		mustSync = mustSync || len(m.GetResponses()) > 0
	}
	done := func() { p.appended(batch) }
	switch {
	case !mustSync:
		p.n.later(10*time.Microsecond, done)
	case p.s.opts.Bug == ackBeforeSync:
		p.n.sync(func() {})
		p.n.later(10*time.Microsecond, done)
	default:
		p.n.sync(done)
	}
}

// stateIn returns the hard state of a MsgStorageAppend: whole, or nil.
func stateIn(m *pb.Message) *hardState {
	hs := hardState{term: m.GetTerm(), vote: m.GetVote(), commit: m.GetCommit()}
	if hs == (hardState{}) {
		return nil
	}
	return &hs
}

// appended delivers the answers of writes that are done.
func (p *coreProcess) appended(batch []*pb.Message) {
	p.appends.busy, p.appends.writing = false, nil
	p.payOwed()
	for _, m := range batch {
		p.restore(m.GetSnapshot())
		p.respond(m)
	}
	p.did(nil)
	p.startAppends()
}

// respond delivers the answers that a local message carries.
func (p *coreProcess) respond(m *pb.Message) {
	for _, r := range m.GetResponses() {
		if r.GetTo() != p.n.id {
			p.send(r)
			continue
		}
		p.s.check.sent(p.n, r)
		_ = p.rn.Step(r) // refused only if out of date
		p.observe()
	}
}

// applyWork is a message with entries for the state machine. When the entries are applied, the host
// delivers the answers in the message, and calls done, unless nil.
type applyWork struct {
	m    *pb.Message
	done func()
}

// applyQueue is the work of the state machine.
type applyQueue struct {
	waiting []applyWork
	busy    bool
}

func (p *coreProcess) startApplies() {
	q := &p.applies
	if q.busy || len(q.waiting) == 0 {
		return
	}
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.busy = true
	more, _ := p.s.held()
	p.lateSince = p.s.Now()
	p.n.later(more+p.s.lateApply(p.n)+p.s.rng.Within(0, p.s.plan.applyMax), func() {
		q.busy, p.lateSince = false, 0
		p.apply(w.m.GetEntries())
		p.respond(w.m)
		if w.done != nil {
			w.done()
		}
		p.did(nil)
		p.startApplies()
	})
}

func (p *coreProcess) sendAll(msgs []*pb.Message) {
	for _, m := range msgs {
		p.send(m)
	}
}

// send encodes a message and gives it to the network. Senders learn of some of
// the losses, and what becomes of each snapshot.
func (p *coreProcess) send(m *pb.Message) {
	s, n, to := p.s, p.n, m.GetTo()
	m = p.sealLate(m)
	s.check.sent(n, m)
	s.check.sentAtRest(n, m)
	s.faults.leaseSent(n, m)
	s.sending(n, m)
	if m = s.spoil(m); m == nil || s.mayBreak(m) {
		return
	}
	snap := m.GetType() == pb.MsgSnap
	if snap {
		s.reach.SnapshotsSent++
	}
	tells := snap && s.opts.Bug != silentLoss || !snap && !s.rng.Chance(s.plan.silent)
	s.net.send(packet{from: n.id, to: to, data: wire.MarshalRaft(m), sender: n.incarnation, snap: snap, tells: tells})
}

func (p *coreProcess) hear(of packet, arrived bool) {
	status := raft.SnapshotFinish
	if !arrived {
		status = raft.SnapshotFailure
	}
	if of.snap {
		p.rn.ReportSnapshot(of.to, status)
	}
	if !arrived {
		p.rn.ReportUnreachable(of.to)
	}
	p.did(nil)
}
