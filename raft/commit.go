// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

// advanceCommit raises the commit index as far as the acknowledgements allow,
// and reports whether it rose.
func (l *leader) advanceCommit() bool {
	k := l.committable()
	if k <= l.log.committed {
		return false
	}
	l.log.commitTo(k)
	return true
}

// committable returns the highest index that may be committed, or one at or
// below the commit index if there is none. Index K may be committed when
//
//  1. a majority of each voter set in force holds the log up to K durably, and
//  2. the entry at K is of this leader's term: one of an earlier term could
//     still be replaced, although a majority holds it (thesis 3.6.2).
func (l *leader) committable() uint64 {
	k := l.members.Committed()
	if k <= l.log.committed || !l.log.holds(entryID{term: l.term, index: k}) {
		return 0
	}
	return l.covered(l.log.committed, k)
}

// covered returns the highest index in (committed, k] up to which every entry,
// one by one, could be restored by any majority, given who has acknowledged
// what.
//
// This is the place where the commit rule looks at single entries. Here every
// member holds entries whole, so a majority that holds the log up to k can
// restore all of them.
func (l *leader) covered(_, k uint64) uint64 { return k }
