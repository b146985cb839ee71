// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/raft"
)

// led is the status of a group with voters 1 to 3, at node 1.
func led(group, leader uint64, change func(*Status)) Status {
	s := Status{ID: 1, Group: group, LastIndex: 5000, Members: &pb.ConfState{Voters: []uint64{1, 2, 3}}}
	s.Lead, s.Weight = leader, 100
	if leader == 1 {
		s.Role = raft.StateLeader
		s.Progress = map[uint64]MemberProgress{}
		for _, id := range s.Members.Voters {
			s.Progress[id] = MemberProgress{Match: 5000, State: "StateReplicate", RecentActive: true, Weight: 100}
		}
	}
	if change != nil {
		change(&s)
	}
	return s
}

func settled(p *placer, statuses ...Status) []placement.Move {
	for range 2 {
		if moves := p.plan(statuses); len(moves) > 0 {
			return nil // too early
		}
	}
	return p.plan(statuses)
}

func TestPlacerMovesGroupsOnlyWhenSettledAndHealthy(t *testing.T) {
	require.Equal(t, []placement.Move{{Group: 1, From: 1, To: 2}},
		settled(&placer{}, led(1, 1, nil), led(2, 1, nil), led(3, 3, nil)))
	require.Empty(t, settled(&placer{}, led(1, 1, nil), led(2, 2, nil), led(3, 3, nil)))
	require.Empty(t, settled(&placer{}, led(1, 2, nil), led(2, 2, nil), led(3, 2, nil)), "node 2 moves its own groups, node 1 must not")
	require.Empty(t, settled(&placer{}, led(1, 1, nil), led(2, 1, nil), led(3, 0, nil)), "an election")

	stuck := &placer{}
	for range 11 {
		require.Empty(t, stuck.plan([]Status{led(1, 1, nil), led(2, 1, nil), led(3, 0, nil)}))
	}
	require.Len(t, stuck.plan([]Status{led(1, 1, nil), led(2, 1, nil), led(3, 0, nil)}), 1, "group 3 has lost its majority, and holds up no other")

	left := &placer{}
	left.plan([]Status{led(1, 1, nil), led(2, 1, nil)})
	left.plan([]Status{led(2, 1, nil)})
	require.Len(t, left.seen, 1, "a group that left the node is forgotten")

	for name, change := range map[string]func(*Status){
		"a voter is away": func(s *Status) { s.Progress[3] = MemberProgress{Match: 5000, State: "StateReplicate"} },
		"a voter lags": func(s *Status) {
			s.Progress[3] = MemberProgress{Match: 10, State: "StateReplicate", RecentActive: true}
		},
		"a snapshot is sent": func(s *Status) {
			s.Progress[3] = MemberProgress{Match: 4999, State: "StateSnapshot", RecentActive: true}
		},
		"a log is lost": func(s *Status) {
			s.Progress[3] = MemberProgress{Match: 5000, State: "StateReplicate", RecentActive: true, LogLost: true}
		},
		"a joint change": func(s *Status) { s.Members.VotersOutgoing = []uint64{1, 2} },
		"a full disk":    func(s *Status) { s.Stalled = errors.New("no space left on device") },
	} {
		require.Empty(t, settled(&placer{}, led(1, 1, change), led(2, 1, change)), name)
	}

	// A move, and a change of members, keep a group at its leader for the next looks.
	p := &placer{looks: 4}
	for range 3 {
		require.Empty(t, p.plan([]Status{led(1, 1, nil), led(2, 1, nil)}))
	}
	require.Len(t, p.plan([]Status{led(1, 1, nil), led(2, 1, nil)}), 1)
	fewer := func(s *Status) { s.Members.Learners = []uint64{9} }
	for range 3 {
		require.Empty(t, p.plan([]Status{led(1, 1, fewer), led(2, 1, fewer)}))
	}
	require.Len(t, p.plan([]Status{led(1, 1, fewer), led(2, 1, fewer)}), 1)

	// A group moves only among members with the leader's weight that are not worse.
	member := func(id uint64, change func(*MemberProgress)) func(*Status) {
		return func(s *Status) {
			if p, ok := s.Progress[id]; ok {
				change(&p)
				s.Progress[id] = p
			}
		}
	}
	two := member(2, func(p *MemberProgress) { p.Worse = true })
	require.Equal(t, []placement.Move{{Group: 1, From: 1, To: 3}}, settled(&placer{}, led(1, 1, two), led(2, 1, two)), "node 2 is worse")
	three := member(3, func(p *MemberProgress) { p.Weight = 50 })
	both := func(s *Status) { two(s); three(s) }
	require.Empty(t, settled(&placer{}, led(1, 1, both), led(2, 1, both), led(3, 1, both)))
	larger := member(3, func(p *MemberProgress) { p.Weight = 200 })
	require.Equal(t, []placement.Move{{Group: 1, From: 1, To: 2}}, settled(&placer{}, led(1, 1, larger), led(2, 1, larger)), "that is the leader's own business")

	byLoad := &placer{weight: func(s Status) uint64 { return s.Group }}
	require.Equal(t, []placement.Move{{Group: 5, From: 1, To: 2}}, settled(byLoad, led(5, 1, nil), led(6, 1, nil)), "the lighter of the two groups moves")
}

// A host that stops hands over to the voter with the longest log, but to none whose log it knows to be lost.
func TestStopHandsOverToNoMemberThatLostItsLog(t *testing.T) {
	require.EqualValues(t, 3, fittest(led(1, 1, func(s *Status) {
		s.Progress[2] = MemberProgress{Match: 5000, State: "StateReplicate", RecentActive: true, LogLost: true}
		s.Progress[3] = MemberProgress{Match: 4000, State: "StateReplicate", RecentActive: true}
	})))
}

func TestBalancerConfig(t *testing.T) {
	_, err := NewBalancer(BalancerConfig{Interval: -1, Hysteresis: -5, Settle: -1})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorIs(t, err, placement.ErrInvalid)
	require.ErrorContains(t, err, "Hosts is nil")
	require.ErrorContains(t, err, "Settle is -1")
}
