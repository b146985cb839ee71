// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
)

// The leader's messages to a member depend on the leader's knowledge of the member's
// log (tracker.Progress):
//
//	Probe      unknown where the logs agree: one append at a time, until one
//	           is accepted
//	Replicate  known: appends follow each other without waiting, within the
//	           limits on what may be in flight
//	Snapshot   the entries it needs are compacted: nothing until it has the
//	           snapshot

// broadcastAppend sends every other member its next entries, or at least the commit
// index.
func (l *leader) broadcastAppend() {
	l.members.Visit(func(id uint64, pr *tracker.Progress) {
		if id != l.id {
			l.sendAppend(id, pr, true)
		}
	})
}

// sendAppend sends a member its next entries, and reports whether a message was sent.
// An append without entries is sent only if evenEmpty, to tell the commit index or to
// find out where the logs agree.
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
	// With a full window an append without entries still goes out: if every message in
	// the window was lost, the answer to the empty append reopens the window.
	if pr.State != tracker.StateReplicate || !pr.Inflights.Full() {
		ents, saved, err = l.entriesFor(to, pr.Next)
	}
	switch {
	case len(ents) == 0 && !evenEmpty:
		return false
	case err != nil:
		return l.sendSnapshot(to, pr)
	}
	e := l.message(pb.MsgApp, to).withEntryID(ecraft.ID{Term: prevTerm, Index: pr.Next - 1}).withCommit(l.log.committed)
	e.msg.Entries = ents
	l.send(e)
	size := int(payloadSize(ents)) - saved
	if l.cfg.Pace != nil && len(ents) > 0 {
		l.cfg.Pace.Sent(to, pr.Next, ents[len(ents)-1].GetIndex(), size)
	}
	pr.SentEntries(len(ents), uint64(size))
	pr.SentCommit(l.log.committed)
	return true
}

// entriesFor returns the entries, from index next on, for one append to a member.
//
// The leader decides here on the form of an entry for a member: the entry itself, the
// same for all, or the member's units. An entry that the host turns into units
// ([Coding.LateSeal]) is shorter on the wire by saved bytes.
func (l *leader) entriesFor(to, next uint64) (ents []*pb.Entry, saved int, err error) {
	room := l.extension.Room(to, next)
	if room <= 0 || l.cfg.Pace != nil && !l.cfg.Pace.MaySend(to, next) {
		return nil, 0, nil
	}
	ents, err = l.log.from(next, entryEncodingSize(l.cfg.MaxSizePerMsg))
	if err == nil && len(ents) > 0 {
		ents, saved = l.extension.Form(to, ents, room)
	}
	return ents, saved, err
}

// sendSnapshot sends the snapshot to a member in need of compacted entries, and reports
// whether a message was sent.
func (l *leader) sendSnapshot(to uint64, pr *tracker.Progress) bool {
	if !pr.RecentActive {
		return false // a snapshot would not arrive; wait until the member is back
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
	l.cfg.Logger.Infof("raft: node %x sends snapshot %v to %x (%s)", l.id, snapshotID(s), to, pr)
	pr.BecomeSnapshot(s.GetMetadata().GetIndex())
	e := l.message(pb.MsgSnap, to)
	e.msg.Snapshot = s
	l.send(e)
	return true
}

// broadcastHeartbeat sends every other member a heartbeat with the newest round of
// reads, so that an answer to any heartbeat confirms the reads.
func (l *leader) broadcastHeartbeat() {
	ctx := l.reads.round()
	l.members.Visit(func(id uint64, pr *tracker.Progress) {
		if id == l.id {
			return
		}
		// Not beyond the known agreement: behind it a member's log may differ, and the
		// member must not take the difference for committed.
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
		// The hint has the member's term. Up to the hint, none of our entries of higher
		// terms can be in the member's log.
		agree = l.log.match(ecraft.ID{Term: term, Index: agree}).Index
	}
	if pr.MaybeDecrTo(m.GetIndex(), agree) {
		if pr.State == tracker.StateReplicate {
			pr.BecomeProbe()
		}
		l.sendAppend(m.GetFrom(), pr, true)
	}
}

// appendAccepted notes how far a member's log agrees, commits if possible, and sends
// further entries into the room made by the answer. The leader's own answer arrives
// here too, when its log is durable.
func (l *leader) appendAccepted(pr *tracker.Progress, m *pb.Message) {
	from, index := m.GetFrom(), m.GetIndex()
	// An answer without news still ends probing.
	if !pr.MaybeUpdate(index) && (pr.Match != index || pr.State != tracker.StateProbe) {
		return
	}
	switch pr.State {
	case tracker.StateProbe:
		pr.BecomeReplicate()
	case tracker.StateReplicate:
		pr.Inflights.FreeLE(index)
	case tracker.StateSnapshot:
		// By the snapshot we sent or by any other way: as soon as this log reaches back
		// to its end, the member can go on from there.
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
	// The member answers but lags, or the point of agreement is unknown: an append
	// restarts replication, also if every append in flight was lost.
	if pr.Match < l.log.last().Index || pr.State == tracker.StateProbe {
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
		pr.PendingSnapshot = 0 // so that probing starts at the known agreement
	}
	pr.BecomeProbe()
	// After a success its acknowledgement is on the way; after a failure wait
	// for a heartbeat's answer before trying again.
	pr.MsgAppFlowPaused = true
}
