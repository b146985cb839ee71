// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// hostProgress is the host's progress in applying committed entries, and the budget for
// entries handed out and not applied yet.
type hostProgress struct {
	// applying is the highest index handed to the host.
	//
	// Invariant: applied <= applying <= committed.
	applying uint64
	// applied is the highest index reported as applied by the host.
	applied uint64

	// limit bounds outstanding.
	limit entryEncodingSize
	// outstanding is the size of the entries in (applied, applying]. After a restart,
	// or when reports skip entries, outstanding may be less.
	outstanding entryEncodingSize
	// full is set while nothing more may be handed out: when outstanding reaches limit,
	// and when a Ready was cut short because the next entry did not fit. Until the host
	// reports, asking again would find no room.
	full bool
}

// releasable returns the highest index to hand to the host for applying. An entry may
// commit before this node has written the entry; a host may apply such an entry early
// if writing and applying are one turn (allowUnwritten), and else within a bound (early.go).
//
// Committed entries are released here: a node with only a part of an entry's payload
// stops before the entry.
func (l *raftLog) releasable(allowUnwritten bool) uint64 {
	if allowUnwritten {
		return l.node.seam().Releasable(l.committed)
	}
	return l.node.seam().Releasable(l.applicable())
}

// hasNextCommitted reports whether nextCommitted would return anything, without
// reading entries.
func (l *raftLog) hasNextCommitted(allowUnwritten bool) bool {
	// A snapshot goes first: entries behind the snapshot wait until the host has
	// applied the snapshot.
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
	if ents, err = l.node.seam().Unwrap(ents, uint64(l.limit-l.outstanding)); err != nil {
		l.fail(err, "entries from %d on are committed and not yet applied", lo)
		return nil
	}
	return ents
}

// acceptApplying records entries as handed to the host.
func (l *raftLog) acceptApplying(ents []*pb.Entry, allowUnwritten bool) {
	if len(ents) == 0 {
		if l.hasNextCommitted(allowUnwritten) {
			l.node.seam().Offered(l.applying)
		}
		return
	}
	l.applying = ents[len(ents)-1].GetIndex()
	l.outstanding += encodingSize(ents)
	l.full = l.outstanding >= l.limit || l.applying < l.releasable(allowUnwritten)
}

// appliedTo records the host's report: everything up to index is applied. size is the
// size of the reported entries, 0 for a snapshot.
func (l *raftLog) appliedTo(index uint64, size entryEncodingSize) {
	if index < l.applied || index > l.committed {
		l.logger.Panicf("raft: applied index %d is out of range [%d, %d]", index, l.applied, l.committed)
	}
	l.applied = index
	l.applying = max(l.applying, index)
	l.outstanding -= min(size, l.outstanding)
	l.full = l.outstanding >= l.limit
}
