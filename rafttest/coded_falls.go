// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// This file is runs in which leaders fall while coded entries are under way, and
// followers have few units of these beside their own. So each winner of an election
// has something to restore, or to cut: what is rare in other runs, and where most
// can go wrong.

// fallsPlan is a seed's draws about falls, on top of all others.
type fallsPlan struct {
	// mean is the time between falls.
	mean time.Duration
	// pushLoss is the chance of a push of units to get lost.
	pushLoss float64
	// hush is the chance of each link from a leader to go silent shortly before
	// it falls: some followers lack entries, and none may hear of a commit.
	hush float64
	// company is the chance of each other node to fall with it.
	company float64
}

func (p *plan) drawFalls(d world.Draws) {
	p.coded.falls = &fallsPlan{
		mean:     d.Span(20*time.Millisecond, 400*time.Millisecond),
		pushLoss: world.Pick(d, 0, 0.5, 0.9, 1),
		hush:     world.Pick(d, 0, 0.3, 0.6, 1),
		company:  world.Pick(d, 0, 0, 0.2, 0.5),
	}
	if p.coded.policy == policyFull || p.coded.level == 1 {
		p.coded.policy, p.coded.level = policyFixed, d.Between(2, 4)
	}
	p.coded.threshold = min(p.coded.threshold, 64)
}

// losesPush draws whether a message is a push of units that gets lost.
func (s *sim) losesPush(m *pb.Message) bool {
	p := s.plan.coded.falls
	return p != nil && m.GetType() == raft.MsgUnits && string(m.GetContext()) == unitsPushed && s.falls.Chance(p.pushLoss)
}

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
	p, ok := n.proc.(*coreProcess)
	if !ok {
		return false
	}
	commit := p.rn.BasicStatus().GetCommit()
	for _, e := range n.disk.live.entries {
		if e.GetIndex() > commit && s.check.truth.Coded(entryName{e.GetIndex(), e.GetTerm()}.id()) {
			return true
		}
	}
	return false
}
