// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "github.com/weftraft/weft/ecraft"

// early is the part of the log that the host may apply before it has written it: see
// Config.MaxEarlyApplySize.
//
// An entry that a majority has stored is committed, also if this node has not stored it: the
// node's own disk is one of N. Without early applies, a leader's clients wait for the slower of the
// leader's disk and a majority, and a leader whose disk hangs answers nobody. With them, a crash may
// leave a state machine that is ahead of its log. So there are rules:
//
//	E1  Only committed entries are handed out, and an entry that is not written here does not
//	    count for its commit here: acknowledgements, votes and notes go by what is written, as ever.
//	    Else: a leader and one follower of three "store" an entry, the leader's power fails, and
//	    the other two, of which one has the entry, elect the one without.
//	E2  Entries in (written, handed out] are at most limit bytes. Else: a leader whose disk hangs
//	    takes proposals without a bound on its memory, because an applied entry does not count as
//	    uncommitted any more (MaxUncommittedEntriesSize).
//	E3  At a restart the log reaches up to the state (Config.Applied). The host either makes a
//	    state durable only up to where its log is, or first begins its log anew at the state's
//	    index and term, as behind a snapshot. The state has all entries up to there, and they are
//	    committed, so the log that is dropped has nothing more. Else: the log lacks entries between
//	    its end and the state, and the node votes for candidates that lack them, too, or stands
//	    still: newRaft refuses such a log.
//	E4  The host drops entries of its log, and puts snapshots into its Storage, only up to what it
//	    has written, also if its durable state is ahead. Else: the log begins behind its own end, and
//	    after a crash in between neither log nor snapshot has the entries in the middle. With coding,
//	    Releaser stays behind what is written, too: a member counts on what is not released.
//	E5  A snapshot for another node may hold early entries. They are committed, and the receiver has
//	    them, durably, before it says so.
//	E6  A configuration change takes force where it is applied, early or not. Majorities overlap by
//	    where entries are stored: the majority that stored the change meets each later one.
//
// Any node applies early, not the leader alone. A follower learns what is committed from a leader
// whose log is its own up to there, so the rules are the same, and so is the gain, for calls at the
// follower. A rule for the leader would have to say what becomes of early entries when it steps down.
//
// The measure is the encoding of entries in the log, which is what memory holds. With coding, an
// entry at a follower is handed out whole and counts as its units.
type early struct {
	// limit bounds bytes; more than 0.
	limit entryEncodingSize
	// bytes is the size of the entries in (base of the tail, index].
	//
	// Invariant: at most limit.
	bytes entryEncodingSize
	// index is the last of these entries; meaningless while bytes is 0.
	//
	// Invariant: if bytes > 0, at most committed.
	index uint64
}

// newEarly returns nil, which takes no memory in an idle group, unless there is a limit.
func newEarly(limit uint64) *early {
	if limit == 0 {
		return nil
	}
	return &early{limit: entryEncodingSize(limit)}
}

// forget hears that a snapshot has taken the place of the tail.
func (e *early) forget() {
	if e != nil {
		e.bytes = 0
	}
}

// applicable returns the highest committed index whose entry is written, or may be applied before.
func (l *raftLog) applicable() uint64 {
	e, t := l.node.unwritten(), &l.tail
	if e == nil || l.committed <= t.base.Index {
		return min(l.committed, t.base.Index)
	}
	if e.bytes == 0 {
		e.index = t.base.Index
	}
	for e.index < l.committed {
		next := t.slice(e.index+1, e.index+2)
		size := encodingSize(next)
		if e.bytes+size > e.limit {
			break
		}
		e.index, e.bytes = e.index+1, e.bytes+size
	}
	return e.index
}

// written hears that the entries up to id are in Storage.
func (l *raftLog) written(id ecraft.ID) {
	e, t := l.node.unwritten(), &l.tail
	from, ents := t.base.Index, t.entries
	t.written(id)
	if e != nil && e.bytes > 0 && t.base.Index > from {
		e.bytes -= encodingSize(ents[:min(t.base.Index, e.index)-from])
	}
}
