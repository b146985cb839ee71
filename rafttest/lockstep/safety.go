// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

// safety watches whether the group is still sane. Schedules also do what no
// host may: they switch the checks of configuration changes off, apply changes
// that others reject, and so on. Then a leader may be elected that lacks
// committed entries, and messages appear that no sane group sends. Both
// libraries still have to do the same, but Weft may refuse such messages where
// upstream goes on with what it has.
type safety struct {
	lost bool
	// commit is the highest commit index seen, and term that of the member
	// where it was seen: leaders of later terms must have it.
	commit, term uint64
	// leaders is who led which term.
	leaders map[uint64]uint64
}

func (sa *safety) observe(st *status) {
	term, commit := st.HardState.GetTerm(), st.HardState.GetCommit()
	if commit > sa.commit {
		sa.commit, sa.term = commit, term
	}
	if st.SoftState.RaftState != stateLeader {
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
