// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// This file is what a leader's commit must have on the disks: its last entry, at a majority of
// each set of voters that counts; and of each coded entry, so many units that any half of each
// set restores the entry. Both are counted from the disks (held.go); package rafttest does the
// same for cores, with the same [holdings.View].

// looksAtCommit checks what a leader has committed in a turn: by the sets of voters that count at
// the turn's end, or else by those before. A turn that puts several changes into force is not
// judged, nor a leader that has learned the members from others, because only nodes know these.
func (m *member) looksAtCommit(st *replica.Status) {
	c, g, w := &m.commits, m.g, m.n.w
	old, before := max(c.index, g.committed), c.sets
	c.index, g.committed = st.Commit, max(g.committed, st.Commit)
	pending := len(c.changes)
	c.changes = slices.DeleteFunc(c.changes, func(e *pb.Entry) bool { return e.GetIndex() <= st.Emitted })
	switch {
	case st.Role != raft.StateLeader || m.learned():
		c.sets = nil
		return
	case before == nil || pending > 0 || c.members != st.Members:
		c.sets, c.members = m.counting(st), st.Members
	}
	if st.Commit <= old || pending-len(c.changes) > 1 {
		return
	}
	x := commit{g: g, last: ecraft.ID{Index: st.Commit, Term: st.Term}, behind: old}
	invariant, why := x.held(c.sets)
	if why != nil && before != nil {
		invariant, why = x.held(before)
	}
	if why != nil {
		w.fail(invariant, "group %d: %v, leader of term %d, commits up to %d: %v", g.id, m.n, st.Term, st.Commit, why)
	}
	x.count(c.sets)
}

// counting returns the sets of voters that count at a leader.
func (m *member) counting(st *replica.Status) [][]uint64 {
	config, _ := m.core.Members()
	conf := (&tracker.ProgressTracker{Config: config}).ConfState()
	if m.r.Status().Coding == nil {
		return holdings.Sets(conf)
	}
	return holdings.Counting(conf, m.commits.changes, st.Emitted)
}

// learned reports whether a member goes by the members that others have told it. Only this is asked
// at each turn: a whole Status took an eighth of the simulator's time.
func (m *member) learned() bool {
	c, codes := m.core.(interface{ CodingStatus() raft.CodingStatus })
	return codes && c.CodingStatus().MembersAt > 0
}

// commit is the entries that a leader has committed in a turn: those behind an index up to the
// last, which is of the leader's term.
type commit struct {
	g      *group
	last   ecraft.ID
	behind uint64
}

// held checks the entries against the disks.
func (x commit) held(sets [][]uint64) (invariant string, why error) {
	view := &x.g.view
	for _, voters := range sets {
		holders, most := holdings.Majority(voters, func(id uint64) bool {
			h, ok := view.Disk(id).(*held)
			return ok && h.has(x.last)
		})
		if !most {
			return commitDurability, fmt.Errorf("the last entry is on %d disks of the voters %v", holders, voters)
		}
	}
	view.UpTo = x.last.Index
	for _, id := range x.coded() {
		if err := view.Covered(sets, id); err != nil {
			return coverage, err
		}
	}
	return "", nil
}

// coded returns the coded entries, as the disk has them that begins first of those which have the
// last entry.
func (x commit) coded() (ids []ecraft.ID) {
	var log *held
	for _, n := range x.g.w.nodes {
		if h, ok := x.g.view.Disks[n.id].(*held); ok && h.Entry(x.last) != nil && (log == nil || h.index < log.index) {
			log = h
		}
	}
	if log == nil || x.g.view.Truth == nil {
		return nil
	}
	for i := max(x.behind, log.index); i < x.last.Index; i++ {
		e := log.entries[i-log.index]
		if id := (ecraft.ID{Index: e.GetIndex(), Term: e.GetTerm()}); x.g.view.Truth.Coded(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// count counts the coded entries, and those that riders have committed.
func (x commit) count(sets [][]uint64) {
	bare := x.g.view
	for _, id := range x.coded() {
		x.g.w.reach.CodedCommits++
		if bare.UpTo = id.Index; bare.Covered(sets, id) != nil {
			x.g.w.reach.RidersDecided++
		}
	}
}
