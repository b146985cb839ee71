// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// A group names its responders and switches the tuner at run time, at the leader.
func TestGroupNamesRespondersAndSwitchesTheTuner(t *testing.T) {
	peers := addressesOf(t, 1, 2, 3)
	all := map[uint64]*member{}
	for id := range peers {
		all[id] = newMember(t, id, peers)
		all[id].options.TickInterval = 50 * time.Millisecond
		all[id].start(t, weft.Configure(func(c *rawnode.Config) { c.Replica.Leases = &raft.Leases{} }))
	}
	all[1].propose(t, "a line")
	wanted := []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}
	eventually(t, func() bool {
		for _, m := range all {
			err := m.group.SetResponders(within(t), wanted, leases.TunerOn)
			if err == nil {
				return true
			}
			require.ErrorIs(t, err, leases.ErrNotLeader)
		}
		return false
	}, "the leader takes the call")
	for id, m := range all {
		eventually(t, func() bool {
			s, err := m.group.Host().LeaseStatus(within(t))
			return err == nil && s.Stable && s.Tuner.Mode == leases.TunerOn
		}, "node %d answers reads and counts", id)
	}
}

// The user's Leases.Spans is given the user's commands alone: a decoder that panics at others would
// panic at every member, at each start.
func TestSpansAreAskedOfTheUsersCommandsAlone(t *testing.T) {
	m := newMember(t, 1, addressesOf(t, 1))
	asked := make(chan string, 100)
	m.start(t, weft.Configure(func(c *rawnode.Config) {
		c.Replica.Leases = &raft.Leases{Spans: func(command []byte) []leases.Span {
			asked <- string(command)
			return nil
		}}
	}))
	m.propose(t, "a line")
	changed(t, func(ctx context.Context) error { return m.group.AddLearner(ctx, 2, "127.0.0.1:1") }, "a fact in the log")
	m.propose(t, "another line")
	m.stop(t)
	close(asked)
	for command := range asked {
		require.Contains(t, command, "line")
	}
}
