// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// await reads states until one is as wanted.
func await(t testing.TB, states <-chan weft.State, what string, ok func(weft.State) bool) weft.State {
	t.Helper()
	limit := time.After(patience)
	var last weft.State
	for {
		select {
		case s, open := <-states:
			require.True(t, open, "the stream ended before: %s; last: %+v", what, last)
			if last = s; ok(s) {
				return s
			}
		case <-limit:
			t.Fatalf("not within %v: %s; last: %+v", patience, what, last)
		}
	}
}

func watch(t testing.TB, m *member) <-chan weft.State {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	states, err := m.group.Watch(ctx)
	require.NoError(t, err)
	return states
}

func TestWatchTellsOfLeaderMembersRolesAndTheEnd(t *testing.T) {
	all := startCluster(t, 3)
	follower, leader := notLeader(t, all)
	states := watch(t, follower)
	s := await(t, states, "a leader, and caught up", func(s weft.State) bool { return s.Leader != 0 && s.CaughtUp })
	require.Len(t, s.Members, 3)

	all[4] = joiner(t, 4, follower)
	all[4].start(t)
	joined := watch(t, all[4])
	changed(t, func(ctx context.Context) error { return follower.group.AddLearner(ctx, 4, all[4].options.Listen) })
	s = await(t, states, "four members", func(s weft.State) bool { return len(s.Members) == 4 })
	require.Equal(t, weft.Member{ID: 4, Address: all[4].options.Listen}, s.Members[3])
	await(t, joined, "the learner is caught up", func(s weft.State) bool { return s.Role == weft.Learner && s.CaughtUp })
	changed(t, func(ctx context.Context) error { return follower.group.Promote(ctx, 4) })
	await(t, joined, "the learner has a vote", func(s weft.State) bool { return s.Role == weft.Follower && s.Members[3].Voter })

	leader.stop(t)
	s = await(t, states, "another leader", func(s weft.State) bool { return s.Leader != 0 && s.Leader != leader.options.ID && s.CaughtUp })
	ofLeader := watch(t, all[s.Leader])
	await(t, ofLeader, "the leader finds one silent", func(s weft.State) bool {
		return s.Role == weft.Leader && len(s.Silent) == 1 && s.Silent[0] == leader.options.ID && len(s.Behind) == 3
	})
	changed(t, func(ctx context.Context) error { return follower.group.Remove(ctx, leader.options.ID) })
	changed(t, func(ctx context.Context) error { return follower.group.Remove(ctx, 4) })
	await(t, joined, "the removed node knows", func(s weft.State) bool { return s.Removed })

	follower.stop(t)
	s = await(t, states, "the end", func(s weft.State) bool { return s.Ended })
	require.NoError(t, s.Err)
	_, open := <-states
	require.False(t, open)
}

func TestWatchEndsWithItsContext(t *testing.T) {
	all := startCluster(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	states, err := all[1].group.Watch(ctx)
	require.NoError(t, err)
	await(t, states, "this node leads", func(s weft.State) bool { return s.Role == weft.Leader && s.CaughtUp })
	cancel()
	for range states { // until it is closed
	}
}

// A reader that does nothing for a long time keeps nothing waiting, and then gets the latest state,
// and behind it the last; 50 watchers leave no goroutine behind.
func TestSlowWatcherGetsTheLatestState(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	knowEachOther(t, all)
	var slow []<-chan weft.State
	for range 50 {
		states, err := all[1].group.Watch(context.Background())
		require.NoError(t, err)
		slow = append(slow, states)
	}
	fresh := watch(t, all[1])
	for _, id := range []uint64{4, 5, 6} { // each change is one or more states
		changed(t, func(ctx context.Context) error { return all[2].group.AddLearner(ctx, id, addressesOf(t, id)[id]) })
	}
	await(t, fresh, "six members", func(s weft.State) bool { return len(s.Members) == 6 })
	for _, states := range slow {
		eventually(t, func() bool { s := <-states; return len(s.Members) == 6 }, "the latest state, one of the next")
	}
	require.NoError(t, all[1].group.Close(within(t)))
	for _, states := range slow {
		var last weft.State
		for s := range states {
			last = s
		}
		require.True(t, last.Ended)
	}
	eventually(t, func() bool { return watching() < 50 }, "the watchers' goroutines end") // that of fresh ends with the test
	_, ok := <-watchAgain(t, all[1].group.Watch)
	require.True(t, ok, "a watch of a closed group has its last state")
}

func watchAgain(t testing.TB, watch func(context.Context) (<-chan weft.State, error)) <-chan weft.State {
	states, err := watch(within(t))
	require.NoError(t, err)
	return states
}

// watching returns how many goroutines are at work for Watch.
func watching() int {
	text := make([]byte, 8<<20)
	return strings.Count(string(text[:runtime.Stack(text, true)]), "weft.(*watch)")
}
