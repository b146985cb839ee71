// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// slots is the followers of a leader by slot: voters first, then learners, in order of
// id. All is made anew when the members change, and not changed: headers share members.
type slots struct {
	*node
	// Invariant: each of members is a follower of now, and round, the members in the
	// policy's form, has as many.
	members []uint64
	round   ecraft.Round
	units   []int
}

// arrange gives each follower its slot, for entries from now on, and returns the
// followers that left, if the policy learns.
func (s *slots) arrange() (left []uint64) {
	was := s.members
	s.members = nil
	var learners []uint64
	for _, id := range s.raft.Electorate().Everyone() {
		switch pr, follows := s.raft.Progress(id); {
		case !follows || id == s.id:
		case pr.IsLearner:
			learners = append(learners, id)
		default:
			s.members = append(s.members, id)
		}
	}
	voters := len(s.members)
	s.members = append(s.members, learners...)
	s.units = make([]int, len(s.members))
	// In a joint configuration each half must be able to decode: the smaller
	// one sets the level.
	smallest := s.raft.Electorate().Smallest()
	s.round = ecraft.Round{
		Voters:    smallest,
		Layout:    ecraft.NewLayout(smallest, len(s.members)),
		Followers: make([]ecraft.Member, len(s.members)),
	}
	for i, id := range s.members {
		s.round.Followers[i] = ecraft.Member{ID: id, Voter: i < voters}
	}
	if o := s.observer(); o != nil {
		now := s.now()
		for _, id := range was {
			if !slices.Contains(s.members, id) {
				o.Left(id)
				left = append(left, id)
			}
		}
		for _, id := range s.members {
			if !slices.Contains(was, id) {
				o.Joined(id, now)
			}
		}
	}
	return left
}
