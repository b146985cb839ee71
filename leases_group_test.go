// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft_test

import (
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
