// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of five nodes three are voters. All voters are wanted, and no learner is.
func TestAllVotersAreRespondersAndLearnersAreNot(t *testing.T) {
	s := newStage(t, 5, 3, nil, func(set *settings) { set.cfg.Wanted = []Want{{Nodes: []NodeID{AllVoters}}} })
	s.until("the voters serve", time.Second, func() bool { return s.serves(1, Span{}) && s.serves(2, Span{}) && s.serves(3, Span{}) })
	s.pass(time.Second)
	require.False(t, s.serves(4, Span{}))
	require.False(t, s.serves(5, Span{}))
	roster := s.member(1).lease.Status(s.member(1).reading()).Roster
	require.Equal(t, []Want{{Nodes: []NodeID{AllVoters}}}, roster.Wanted, "the next leader gets the wish, not what it means at present")
	require.NoError(t, roster.validate())
}

// The wish survives its leader: the next leader names the others, and the old leader
// after its return.
func TestNextLeaderNamesAllVoters(t *testing.T) {
	s := newStage(t, 3, 3, nil, func(set *settings) { set.cfg.Wanted = []Want{{Nodes: []NodeID{AllVoters}}} })
	s.until("the voters serve", time.Second, func() bool { return s.serves(2, Span{}) && s.serves(3, Span{}) })
	s.sever([]NodeID{1}, []NodeID{2, 3})
	var next *member
	s.until("another leads", 3*time.Second, func() bool {
		for _, id := range []NodeID{2, 3} {
			if m := s.member(id); m.leads {
				next = m
			}
		}
		return next != nil
	})
	s.until("both that are left serve", time.Second, func() bool { return s.serves(2, Span{}) && s.serves(3, Span{}) })
	s.heal()
	s.until("all serve", 3*time.Second, func() bool { return s.serves(1, Span{}) && s.serves(2, Span{}) && s.serves(3, Span{}) })
}

// A learner that is to be a responder is named beside all voters.
func TestLearnerIsNamedBesideAllVoters(t *testing.T) {
	s := newStage(t, 4, 3, nil, func(set *settings) { set.cfg.Wanted = []Want{{Nodes: []NodeID{4, AllVoters}}} })
	s.until("voters and the learner serve", time.Second, func() bool { return s.serves(2, Span{}) && s.serves(3, Span{}) && s.serves(4, Span{}) })
}

// Where members are configured to retire, no leader reads by its lease or names anyone.
func TestLeaderThatIsConfiguredToRetireSwitchesLeasesOff(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	for id := range NodeID(3) {
		s.member(id + 1).lease.cfg.Retired = true
	}
	s.pass(100 * ms)
	require.True(t, s.serves(2, Span{}), "the leader of before did not begin so")
	s.member(1).stop()
	var next *member
	s.until("another leads", 3*time.Second, func() bool { next = s.leader(); return next != nil })
	s.pass(500 * ms)
	require.True(t, next.lease.rosters.newest().Retired)
	s.member(1).start(false)
	s.until("leases are retired", 3*time.Second, next.lease.IsRetired)
	require.False(t, s.serves(1, Span{}))
	require.False(t, s.serves(2, Span{}))
	require.False(t, s.serves(3, Span{}))
}
