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
	// Invariant: each of members is a follower of now, round has the voters among the
	// members in the policy's form, and units an entry for each member: 0 for learners.
	members []uint64
	round   ecraft.Round
	units   []int
}

// arrange gives each follower its slot, for entries from now on.
func (s *slots) arrange() {
	was, voted, begins := s.told, s.toldVoters, s.members == nil
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
		Followers: make([]ecraft.Member, voters),
	}
	for i, id := range s.members[:voters] {
		s.round.Followers[i] = ecraft.Member{ID: id}
	}
	s.told, s.toldVoters = s.members, voters
	if o := s.observer(); o != nil {
		now := s.now()
		for i, id := range was {
			if at := slices.Index(s.members, id); at < 0 || (i < voted) != (at < voters) {
				o.Left(id)
			}
		}
		for i, id := range s.members {
			if at := slices.Index(was, id); begins || at < 0 || (at < voted) != (i < voters) {
				o.Joined(id, i < voters, now)
			}
		}
	}
}

// voters returns the followers with a vote.
func (s *slots) voters() []uint64 { return s.members[:len(s.round.Followers)] }

// readers reports whether there are learners.
func (s *slots) readers() bool { return len(s.members) > len(s.round.Followers) }
