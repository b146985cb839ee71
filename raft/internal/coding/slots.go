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
	begins := s.members == nil
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
	if o := s.observer(); o != nil {
		s.tell(o, begins)
	}
}

// tell tells the policy of followers that have come or left, or got a vote, and of all that there are if a leadership begins.
func (s *slots) tell(o ecraft.Observer, begins bool) {
	now, voters := s.now(), len(s.round.Followers)
	if s.told == nil {
		s.told = new(followers)
	}
	was := *s.told
	*s.told = followers{s.members, voters}
	for i, id := range was.members {
		if at := slices.Index(s.members, id); at < 0 || (i < was.voters) != (at < voters) {
			o.Left(id)
		}
	}
	for i, id := range s.members {
		if at := slices.Index(was.members, id); begins || at < 0 || (at < was.voters) != (i < voters) {
			o.Joined(id, i < voters, now)
		}
	}
}

// voters returns the followers with a vote.
func (s *slots) voters() []uint64 { return s.members[:len(s.round.Followers)] }

// readers reports whether there are learners.
func (s *slots) readers() bool { return len(s.members) > len(s.round.Followers) }
