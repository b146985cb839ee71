// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// What the leader sends a member depends on what it knows of the member's log
// (tracker.Progress):
//
//	Probe      unknown where the logs agree: one append at a time, until one
//	           is accepted
//	Replicate  known: appends follow each other without waiting, within the
//	           limits on what may be in flight
//	Snapshot   the entries it needs are compacted: nothing until it has the
//	           snapshot

// broadcastAppend sends every other member what it lacks, or at least the
// commit index.
func (l *leader) broadcastAppend() {
	l.members.Visit(func(id uint64, pr *tracker.Progress) {
		if id != l.id {
			l.sendAppend(id, pr, true)
		}
	})
}

// sendAppend sends a member the entries that come next for it, and reports
// whether anything was sent. Without entries it sends an append only if
// evenEmpty, to tell the commit index or to find out where the logs agree.
func (l *leader) sendAppend(to uint64, pr *tracker.Progress, evenEmpty bool) bool {
	if pr.IsPaused() {
		return false
	}
	prevTerm, err := l.log.term(pr.Next - 1)
	if err != nil {
		return l.sendSnapshot(to, pr)
	}
	var ents []*pb.Entry
	var saved int
	// When the window is full an append without entries still goes out: if all
	// that filled the window was lost, its answer is what empties it.
	if pr.State != tracker.StateReplicate || !pr.Inflights.Full() {
		ents, saved, err = l.entriesFor(to, pr.Next)
	}
	switch {
	case len(ents) == 0 && !evenEmpty:
		return false
	case err != nil:
		return l.sendSnapshot(to, pr)
	}
	e := l.message(pb.MsgApp, to).withEntryID(entryID{term: prevTerm, index: pr.Next - 1}).withCommit(l.log.committed)
	e.msg.Entries = ents
	l.send(e)
	pr.SentEntries(len(ents), uint64(int(payloadSize(ents))-saved))
	pr.SentCommit(l.log.committed)
	return true
}

// entriesFor returns the entries, from index next on, that one append to a
// member carries.
//
// This is the place where the leader decides what a member is sent for an
// entry: the entry itself, the same for all, or the member's units of it. What
// the host turns into units ([Coding.LateSeal]) takes so many bytes less than it
// has here.
func (l *leader) entriesFor(to, next uint64) (ents []*pb.Entry, saved int, err error) {
	room := l.coder.Room(to, next)
	if room <= 0 {
		return nil, 0, nil
	}
	ents, err = l.log.from(next, entryEncodingSize(l.cfg.MaxSizePerMsg))
	if err == nil && len(ents) > 0 {
		ents, saved = l.coder.Form(to, ents, room)
	}
	return ents, saved, err
}

// sendSnapshot sends a member that needs compacted entries the snapshot
// instead, and reports whether it could.
func (l *leader) sendSnapshot(to uint64, pr *tracker.Progress) bool {
	if !pr.RecentActive {
		return false // it would not arrive; wait until the member is back
	}
	s, err := l.log.snapshot()
	if errors.Is(err, ErrSnapshotTemporarilyUnavailable) {
		return false
	}
	if err == nil && IsEmptySnap(s) {
		err = errors.New("the snapshot is empty")
	}
	if err != nil {
		l.log.fail(err, "Snapshot, for a member that needs entries from %d on", pr.Next)
		return false
	}
	l.logger.Infof("raft: node %x sends snapshot %v to %x (%s)", l.id, snapshotID(s), to, pr)
	pr.BecomeSnapshot(s.GetMetadata().GetIndex())
	e := l.message(pb.MsgSnap, to)
	e.msg.Snapshot = s
	l.send(e)
	return true
}

// broadcastHeartbeat sends everyone a heartbeat. It carries the newest round of
// reads, so any heartbeat confirms them.
func (l *leader) broadcastHeartbeat() {
	ctx := l.reads.round()
	l.members.Visit(func(id uint64, pr *tracker.Progress) {
		if id == l.id {
			return
		}
		// Not beyond what is known to agree: a member's log may be another's
		// from there on, and it must not take that for committed.
		commit := min(pr.Match, l.log.committed)
		e := l.message(pb.MsgHeartbeat, id).withCommit(commit)
		e.msg.Context = ctx
		l.send(e)
		pr.SentCommit(commit)
	})
}

// appendRejected goes back to where the logs may agree, and asks there.
func (l *leader) appendRejected(pr *tracker.Progress, m *pb.Message) {
	agree := m.GetRejectHint()
	if term := m.GetLogTerm(); term > 0 {
		// The member says what it has at the hint. No entry of ours with a
		// higher term, up to there, can be in its log.
		agree = l.log.match(entryID{term: term, index: agree}).index
	}
	if pr.MaybeDecrTo(m.GetIndex(), agree) {
		if pr.State == tracker.StateReplicate {
			pr.BecomeProbe()
		}
		l.sendAppend(m.GetFrom(), pr, true)
	}
}

// appendAccepted takes note of how far a member's log agrees, commits what has
// become safe, and sends what the answer has made room for. The leader's own
// answer comes here too, when its log is durable.
func (l *leader) appendAccepted(pr *tracker.Progress, m *pb.Message) {
	from, index := m.GetFrom(), m.GetIndex()
	// An answer that tells nothing new still ends probing.
	if !pr.MaybeUpdate(index) && (pr.Match != index || pr.State != tracker.StateProbe) {
		return
	}
	switch pr.State {
	case tracker.StateProbe:
		pr.BecomeReplicate()
	case tracker.StateReplicate:
		pr.Inflights.FreeLE(index)
	case tracker.StateSnapshot:
		// By the snapshot we sent or by any other way: as soon as the log
		// reaches back to it, the member can go on from there.
		if pr.Match+1 >= l.log.firstIndex() {
			pr.BecomeProbe() // forgets the snapshot
			pr.BecomeReplicate()
		}
	}
	switch {
	case l.advanceCommit():
		l.releaseEarlyReads()
		l.broadcastAppend()
	case from != l.id && pr.CanBumpCommit(l.log.committed):
		l.sendAppend(from, pr, true)
	}
	if from == l.id {
		return
	}
	for l.sendAppend(from, pr, false) {
	}
	l.continueTransfer(from, pr)
}

func (l *leader) heartbeatAnswered(pr *tracker.Progress, m *pb.Message) {
	pr.RecentActive = true
	pr.MsgAppFlowPaused = false
	// It is there but lags, or it is not known where its log agrees: an append
	// gets things going again, also when everything in flight was lost.
	if pr.Match < l.log.last().index || pr.State == tracker.StateProbe {
		l.sendAppend(m.GetFrom(), pr, true)
	}
	if l.cfg.ReadOnlyOption == ReadOnlySafe && len(m.GetContext()) > 0 {
		l.readsAcked(m.GetFrom(), m.GetContext())
	}
}

// snapshotSent hears from the host how sending a snapshot went.
func (l *leader) snapshotSent(pr *tracker.Progress, m *pb.Message) {
	if pr.State != tracker.StateSnapshot {
		return
	}
	if m.GetReject() {
		pr.PendingSnapshot = 0 // so that probing starts from what is known
	}
	pr.BecomeProbe()
	// After a success its acknowledgement is on the way; after a failure wait
	// for a heartbeat's answer before trying again.
	pr.MsgAppFlowPaused = true
}
