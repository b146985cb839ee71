// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// move stops a member and starts the member at another address.
func (m *member) move(t testing.TB) {
	m.stop(t)
	m.options.Listen = addressesOf(t, m.options.ID)[m.options.ID]
	m.options.Advertise = m.options.Listen
	m.start(t)
}

// The leader moves, again and again: each time another member leads meanwhile, and the one that
// moved takes commands as soon as it is back.
func TestLeaderMovesToAnotherAddress(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	for round := range 3 {
		_, leader := notLeader(t, all)
		leader.move(t)
		require.Equal(t, round+2, leader.propose(t, fmt.Sprint("moved ", round)))
		knowEachOther(t, all)
	}
	for _, m := range all {
		m.stop(t)
	}
	for _, m := range all {
		m.start(t)
	}
	require.Equal(t, 5, all[1].propose(t, "after a restart of all"))
}

// A member moves while a majority is down, so that nothing can be replicated. The others hear of the
// address when they are back, also after the mover was restarted once more.
func TestMemberMovesWhileAMajorityIsDown(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	_, leader := notLeader(t, all)
	others := map[uint64]*member{}
	for id, m := range all {
		if m != leader {
			others[id] = m
			m.stop(t)
		}
	}
	leader.move(t)
	leader.stop(t)
	leader.start(t)
	for _, m := range others {
		m.start(t)
		require.NotEqual(t, leader.node.Address(), m.options.Peers[leader.options.ID])
	}
	for _, m := range all {
		m.propose(t, "after")
	}
	knowEachOther(t, all)
	require.Len(t, leader.read(t), 4)
}

// An operator mistypes an address in the options of a restart, and then sets the right one, which the group has had all the
// time.
func TestAddressIsSetAgainstAMistakeInTheOptions(t *testing.T) {
	all := startCluster(t, 3)
	right := all[2].node.Address()
	changed(t, func(ctx context.Context) error { return all[3].group.SetAddress(ctx, 2, right) })
	all[1].propose(t, "node 1 has the address from the log")
	all[1].stop(t)
	all[1].options.Peers = maps.Clone(all[1].options.Peers)
	all[1].options.Peers[2] = addressesOf(t, 2)[2]
	all[1].start(t)
	require.NotEqual(t, right, all[1].node.Addresses()[2])
	changed(t, func(ctx context.Context) error { return all[3].group.SetAddress(ctx, 2, right) })
	eventually(t, func() bool { return all[1].node.Addresses()[2] == right }, "the address is newer than the options")
	all[1].propose(t, "after")
}

// An operator sets the address of a member that runs and knows better: the member's own word counts
// in the end, and the group goes on.
func TestMemberKnowsItsAddressBetterThanAnOperator(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	follower, _ := notLeader(t, all)
	id, own := follower.options.ID, follower.node.Address()
	other := all[id%3+1]
	wrong := addressesOf(t, 9)[9]
	changed(t, func(ctx context.Context) error { return other.group.SetAddress(ctx, id, wrong) })
	eventually(t, func() bool { return other.node.Addresses()[id] == own }, "the member's own word")
	require.Equal(t, 2, follower.propose(t, "after"))
	// A member that is down cannot object, and does when it is back.
	follower.stop(t)
	changed(t, func(ctx context.Context) error { return other.group.SetAddress(ctx, id, wrong) })
	require.Equal(t, wrong, other.node.Addresses()[id])
	follower.start(t)
	require.Equal(t, 3, follower.propose(t, "back"))
	knowEachOther(t, all)
}
