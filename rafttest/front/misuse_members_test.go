// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

var memberMistakes = []misuse{
	{"member 0", func(t *testing.T, c *misused) error { return c.all[1].group.AddLearner(within(t), 0, "127.0.0.1:7") }, weft.ErrInvalid, "want 1 to"},
	{"a member without an address", func(t *testing.T, c *misused) error { return c.all[1].group.AddVoter(within(t), 4, "") }, weft.ErrAddress, "want host:port"},
	{"a member without a port", func(t *testing.T, c *misused) error { return c.all[1].group.AddVoter(within(t), 4, "10.0.0.4") }, weft.ErrAddress, "want host:port"},
	{"the address of another member", func(t *testing.T, c *misused) error {
		return c.all[1].group.AddVoter(within(t), 4, c.all[2].node.Address())
	}, weft.ErrAddress, "the address of node 2"},
	{"a voter as a learner", func(t *testing.T, c *misused) error { return c.all[1].group.AddLearner(within(t), 2, "127.0.0.1:7") }, weft.ErrInvalid, "node 2 is a voter"},
	{"a member that does not answer", func(t *testing.T, c *misused) error {
		at := addressesOf(t, 5)[5]
		err := untilUnsafe(t, func() error { return c.all[1].group.AddVoter(longer(t), 5, at) })
		changed(t, func(ctx context.Context) error { return c.all[2].group.Remove(ctx, 5) }, "it is a learner")
		return err
	}, weft.ErrUnsafeChange, "learner 5"},
	{"a member that was removed", func(t *testing.T, c *misused) error { return c.all[3].group.AddLearner(within(t), 5, "127.0.0.1:7") }, weft.ErrRemoved, "never used"},
	{"promoting a stranger", func(t *testing.T, c *misused) error { return c.all[1].group.Promote(within(t), 8) }, weft.ErrNotMember, "add it as a learner"},
	{"removing a stranger", func(t *testing.T, c *misused) error { return c.all[1].group.Remove(within(t), 8) }, weft.ErrNotMember, "[1 2 3]"},
	{"moving a stranger", func(t *testing.T, c *misused) error { return c.all[1].group.SetAddress(within(t), 8, "127.0.0.1:7") }, weft.ErrNotMember, "[1 2 3]"},
	{"a member replaced by itself", func(t *testing.T, c *misused) error { return c.all[1].group.Replace(within(t), 2, 2, "127.0.0.1:7") }, weft.ErrInvalid, "both 2"},
	{"removing a member that the others need", func(t *testing.T, c *misused) error {
		all := startCluster(t, 2)
		all[1].propose(t, "a line")
		knowEachOther(t, all)
		follower, leader := notLeader(t, all)
		follower.stop(t)
		return leader.group.Remove(longer(t), leader.options.ID)
	}, weft.ErrRefused, ""},
	{"removing a member behind another's death", func(t *testing.T, c *misused) error {
		all := startCluster(t, 3)
		all[1].propose(t, "a line")
		knowEachOther(t, all)
		follower, leader := notLeader(t, all)
		third := 6 - follower.options.ID - leader.options.ID
		follower.stop(t)
		err := untilUnsafe(t, func() error { return leader.group.Remove(longer(t), third) })
		changed(t, func(ctx context.Context) error { return leader.group.ForceRemove(ctx, third) })
		voters, _ := leader.ids()
		require.ElementsMatch(t, []uint64{follower.options.ID, leader.options.ID}, voters)
		return err
	}, weft.ErrUnsafeChange, "might not go on"},
}
