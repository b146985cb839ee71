// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode"
)

// Leadership goes to the node with the largest weight, follows a weight that changes, at a node or in one group, and
// leaves a node whose weight becomes 0; and each node knows the health of all.
func TestLeadershipFollowsWeights(t *testing.T) {
	all := map[uint64]*member{}
	peers := addressesOf(t, 1, 2, 3)
	for id := range peers {
		all[id] = newMember(t, id, peers)
		all[id].options.LeaderWeight = map[uint64]int{1: -1, 2: 0, 3: 200}[id]
		all[id].start(t, weft.Configure(func(c *rawnode.Config) {
			if id == 1 {
				c.Replica.LeaderWeight = 100 // in this group
			}
		}))
	}
	leads := func(id uint64) func() bool {
		return func() bool { return all[1].group.Leader() == id && all[id].group.Leader() == id }
	}
	all[2].propose(t, "a line")
	eventually(t, leads(3), "node 3 leads")
	require.NoError(t, all[3].node.SetLeaderWeight(-1))
	require.NoError(t, all[1].group.SetLeaderWeight(150))
	eventually(t, leads(1), "node 1 leads")
	all[3].propose(t, "another")
	for id := range all {
		eventually(t, func() bool {
			seen := all[id].node.Placement().Seen()
			return len(seen) == 3 && seen[0].Weight == 0 && seen[1].Weight == 100 && seen[2].Weight == 0 &&
				seen[0].Health.Turn > 0 && seen[1].Health.Turn > 0 && seen[2].Health.Turn > 0
		}, "node %d knows the others", id)
	}
	require.Equal(t, 150, all[1].group.Host().Status().Weight)
	eventually(t, func() bool { return all[1].group.Host().Status().Progress[3].Worse }, "node 1, where it leads, finds node 3 worse")
	handOvers := func() (n uint64) {
		for _, m := range all {
			n += m.group.Host().Status().Counters.HandOversPreferred
		}
		return n
	}
	for handOvers() == 0 { // on a machine that stands still elections may come first: then once more
		require.NoError(t, all[3].node.SetLeaderWeight(200))
		eventually(t, func() bool { return all[1].group.Leader() == 3 }, "node 3 leads again")
		require.NoError(t, all[3].node.SetLeaderWeight(-1))
		eventually(t, leads(1), "node 1 leads again")
	}

	require.ErrorIs(t, all[1].node.SetLeaderWeight(1001), weft.ErrInvalid)
	require.ErrorIs(t, all[1].group.SetLeaderWeight(1001), weft.ErrInvalid)
	require.ErrorIs(t, (*weft.Node)(nil).SetLeaderWeight(1), weft.ErrInvalid)
	require.ErrorIs(t, (*weft.Group)(nil).SetLeaderWeight(1), weft.ErrInvalid)
}
