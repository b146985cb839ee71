// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// hostProgress is how far the host has come with applying committed entries,
// and the budget that keeps it from being given more than it can hold.
type hostProgress struct {
	// applying is the highest index handed to the host.
	//
	// Invariant: applied <= applying <= committed.
	applying uint64
	// applied is the highest index that the host has reported as applied.
	applied uint64

	// limit bounds outstanding.
	limit entryEncodingSize
	// outstanding is the size of the entries in (applied, applying]. After a
	// restart, or with reports that skip entries, it may be less.
	outstanding entryEncodingSize
	// full is set while nothing more may be handed out. It is not the same as
	// outstanding >= limit: a Ready that was cut short because the next entry
	// would not fit sets it too, as asking again before a report is pointless.
	full bool
}

// releasable returns the highest index that may be handed to the host for
// applying. An entry may commit before it is written here; the host may apply
// it before that only if it writes and applies in one turn (allowUnwritten).
//
// This is the place where committed entries are released: a node that holds an
// entry only in part stops here, before it.
func (l *raftLog) releasable(allowUnwritten bool) uint64 {
	if allowUnwritten {
		return l.node.coder.Releasable(l.committed)
	}
	return l.node.coder.Releasable(min(l.committed, l.tail.base.index))
}

// hasNextCommitted reports whether nextCommitted would return anything, without
// reading entries.
func (l *raftLog) hasNextCommitted(allowUnwritten bool) bool {
	// A snapshot goes first: what comes behind it waits until it is applied.
	return !l.full && l.tail.snapshot == nil && l.applying < l.releasable(allowUnwritten)
}

// nextCommitted returns the entries that the host is to apply next.
func (l *raftLog) nextCommitted(allowUnwritten bool) []*pb.Entry {
	if !l.hasNextCommitted(allowUnwritten) {
		return nil
	}
	if l.limit <= l.outstanding {
		l.logger.Panicf("raft: no room for entries to apply: %d of %d bytes are outstanding; set Config.MaxCommittedSizePerReady above 0", l.outstanding, l.limit)
	}
	lo, hi := l.applying+1, l.releasable(allowUnwritten)+1
	ents, err := l.slice(lo, hi, l.limit-l.outstanding)
	if err != nil {
		l.fail(err, "entries [%d, %d) are committed and not yet applied", lo, hi)
		return nil
	}
	if ents, err = l.node.coder.Unwrap(ents, uint64(l.limit-l.outstanding)); err != nil {
		l.fail(err, "entries from %d on are committed and not yet applied", lo)
		return nil
	}
	return ents
}

// acceptApplying records that the host was given the entries.
func (l *raftLog) acceptApplying(ents []*pb.Entry, allowUnwritten bool) {
	if len(ents) == 0 {
		if l.hasNextCommitted(allowUnwritten) {
			l.node.coder.Offered(l.applying)
		}
		return
	}
	l.applying = ents[len(ents)-1].GetIndex()
	l.outstanding += encodingSize(ents)
	l.full = l.outstanding >= l.limit || l.applying < l.releasable(allowUnwritten)
}

// appliedTo records that the host has applied everything up to index; size is
// that of the entries it reports, 0 for a snapshot.
func (l *raftLog) appliedTo(index uint64, size entryEncodingSize) {
	if index < l.applied || index > l.committed {
		l.logger.Panicf("raft: applied index %d is out of range [%d, %d]", index, l.applied, l.committed)
	}
	l.applied = index
	l.applying = max(l.applying, index)
	l.outstanding -= min(size, l.outstanding)
	l.full = l.outstanding >= l.limit
}
