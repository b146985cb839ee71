// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "github.com/weftraft/weft/ecraft"

// advanceCommit raises the commit index as far as acknowledgements allow, and reports
// whether the index rose.
func (l *leader) advanceCommit() bool {
	k := l.committable()
	if k <= l.log.committed {
		return false
	}
	l.log.commitTo(k)
	return true
}

// committable returns the highest index free to commit, or an index at or below the
// commit index if there is none. Index K may be committed when
//
//  1. a majority of each voter set in force holds the log up to K durably,
//  2. any majority could restore each entry up to K: a matter of course where
//     members hold entries whole (see package coding), and
//  3. the entry at K is of this leader's term: an entry of an earlier term could still
//     be replaced, although a majority holds it (thesis 3.6.2).
func (l *leader) committable() uint64 {
	k := l.extension.Committable(l.members.Committable())
	if k <= l.log.committed || !l.log.holds(ecraft.ID{Term: l.term, Index: k}) {
		return 0
	}
	return k
}
