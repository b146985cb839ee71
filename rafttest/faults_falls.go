// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// This file is runs in which leaders fall while coded entries are under way, and
// followers have few units of these beside their own. So each winner of an election
// has something to restore, or to cut: what is rare in other runs, and where most
// can go wrong.

// beginFalls plans the first fall.
func (f *faults) beginFalls() {
	if p := f.s.plan.coded.falls; p != nil && p.mean > 0 {
		f.every(p.mean, f.fall)
	}
}

// fall lets a leader with coded entries under way go silent, and then lose power,
// perhaps with others.
func (f *faults) fall() {
	s, p := f.s, f.s.plan.coded.falls
	n := s.leading()
	if n == nil || n.paused || !s.codedUnderWay(n) {
		return
	}
	var mends []func()
	for _, other := range s.nodes {
		if other != n && s.falls.Chance(p.hush) {
			mends = append(mends, s.net.Cut(n.id, other.id))
		}
	}
	s.tell(n.id, "is about to fall; %d links are silent", len(mends))
	s.After(s.falls.Within(0, 10*time.Millisecond), func() {
		if s.calm() {
			return // all is mended
		}
		s.coded.Falls++
		f.crash(n)
		for _, other := range s.nodes {
			if other != n && s.falls.Chance(p.company) {
				f.crash(other)
			}
		}
		f.mendLater("silence", mends)
	})
}

// codedUnderWay reports whether a leader has a coded entry that is not committed.
func (s *sim) codedUnderWay(n *node) bool {
	commit := n.proc.rn.BasicStatus().GetCommit()
	return slices.ContainsFunc(n.disk.live.entries, func(e *pb.Entry) bool {
		return e.GetIndex() > commit && s.check.truth.Coded(entryName{e.GetIndex(), e.GetTerm()}.id())
	})
}
