// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswersThatBringNoCommitLetNoTimePass has answers of a slow follower, and of another group, between two entries.
func TestAnswersThatBringNoCommitLetNoTimePass(t *testing.T) {
	m, l, other := NewTrials(nil), &lane{}, &lane{large: true}
	commits := func(index uint64, now float64) {
		m.proposed(l, index, 1000, inSeconds(now))
		m.wantFull(l, 0, inSeconds(now))
		m.answered(l, inSeconds(now+1e-3))
		m.committed(l, index)
	}
	commits(1, 0)
	m.answered(l, inSeconds(0.5))
	m.answered(other, inSeconds(1))
	commits(2, 2)
	require.InDelta(t, 1e-3, m.turn.busy, 1e-9)
}

func TestPauseBehindAGroupThatLeadsNoMoreIsNoPartOfATrial(t *testing.T) {
	s := newServer(1e-3, 2e-3, 0.9)
	s.run(0.05)
	s.p.proposed(&lane{large: true}, 7, 1000, s.now)
	s.run(forgotten / 2.0)
	s.drain()
	before := s.p.now
	s.now += 100
	s.propose()
	require.InDelta(t, before, s.p.now, 1e-9)
}

// TestEntryThatNobodyCommitsHoldsNoTrial has a group propose that has no majority.
func TestEntryThatNobodyCommitsHoldsNoTrial(t *testing.T) {
	plain := func(coded, full float64) (share float64) {
		const steps = 2000
		s, hung := newServer(coded, full, 0.9), &lane{large: true}
		s.lanes, s.clients = make([]lane, 10), 50
		for i := range uint64(steps) {
			s.p.proposed(hung, i+1, 1000, s.now)
			share += s.run(0.01) / steps
		}
		return share
	}
	require.Less(t, plain(1e-3, 3e-3), 0.1, "coding is better")
	require.Greater(t, plain(1.5e-3, 1e-3), 0.8, "full copies are better")
}

// TestGroupWithLinksOfItsOwnGoesApart has full copies win, for the processors of most groups, and fill the link of one.
func TestGroupWithLinksOfItsOwnGoesApart(t *testing.T) {
	const every, coded, full = 40e-3, 20e-3, 60e-3
	for _, begins := range []float64{0, 5} {
		s, l := newServer(1.5e-3, 1e-3, 0.9), &lane{}
		s.lanes, s.clients = make([]lane, 10), 20
		var waiting [][2]float64 // when proposed, and when committed
		index, free, worst := uint64(0), 0.0, 0.0
		for s.now < begins+60 {
			s.run(1e-3)
			for len(waiting) > 0 && waiting[0][1] <= s.now {
				worst, waiting = max(worst, s.now-waiting[0][0]), waiting[1:]
				s.p.at(s.now)
				s.p.committed(l, index-uint64(len(waiting)))
			}
			if s.now >= begins+float64(index)*every {
				index++
				s.p.proposed(l, index, 1000, s.now)
				cost := coded
				if s.p.wantFull(l, s.busy, s.now) {
					cost = full
				}
				free = max(free, s.now) + cost
				waiting = append(waiting, [2]float64{s.now, free})
			}
		}
		require.Greater(t, s.run(10), 0.9)
		require.Less(t, worst, 0.5, "seconds of an entry over the link")
	}
}

// TestMoreLoadKeepsGroupsTogether has entries wait for many times as long, in each group, once full copies are in force.
func TestMoreLoadKeepsGroupsTogether(t *testing.T) {
	s := newServer(1.5e-3, 1e-3, 0.9)
	s.lanes, s.clients = make([]lane, 10), 10
	s.run(5)
	s.clients = 200
	require.Greater(t, s.run(20), 0.9)
}

// TestNoiseKeepsGroupsTogether has each entry take its own time, in groups whose links are the same.
func TestNoiseKeepsGroupsTogether(t *testing.T) {
	groups := func(coded, full float64, seed uint64) *server {
		s := halting(coded, full, seed)
		s.lanes = make([]lane, 10)
		return s
	}
	require.Less(t, lost(groups, 1.5e-3, 1e-3, 1, 20), 0.06)
}
