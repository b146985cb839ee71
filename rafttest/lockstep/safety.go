// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"github.com/weftraft/weft/raft"
)

// safety watches whether the group is still safe. Schedules also break the rules for hosts: they
// switch the checks of configuration changes off, apply changes that other members reject, and so
// on. Then a leader may be elected that lacks committed entries, and messages appear that no safe
// group sends. Both libraries still have to behave alike, but Weft may refuse such messages where
// upstream goes on.
type safety struct {
	lost bool
	// commit is the highest commit index seen, and term the term of the member with this commit
	// index: leaders of later terms must have the entries up to commit.
	commit, term uint64
	// leaders holds the leader of each term.
	leaders map[uint64]uint64
}

func (sa *safety) observe(st *raft.Status) {
	term, commit := st.HardState.GetTerm(), st.HardState.GetCommit()
	if commit > sa.commit {
		sa.commit, sa.term = commit, term
	}
	if st.SoftState.RaftState != raft.StateLeader {
		return
	}
	if sa.leaders == nil {
		sa.leaders = map[uint64]uint64{}
	}
	if other, ok := sa.leaders[term]; ok && other != st.ID {
		sa.lost = true
	}
	sa.leaders[term] = st.ID
	if self, ok := st.Progress[st.ID]; ok && term > sa.term && self.Match < sa.commit {
		sa.lost = true
	}
}
