// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// Two learners read for the group. The leader's process is killed under load, and both go on to
// answer linearizable reads, by each policy, from the next leader's state.
func TestLearnersServeReadsAfterTheLeaderIsKilled(t *testing.T) {
	peers := addressesOf(t, 1, 2, 3)
	all := map[uint64]*member{2: newMember(t, 2, peers), 3: newMember(t, 3, peers)}
	killed := newMember(t, 1, peers)
	process := errand{Options: killed.options, Coded: true}.start(t)
	for _, id := range sortedIDs(all) {
		all[id].start(t, weft.Configure(coded))
	}
	eventually(t, func() bool { return len(process.said(t, "acked")) > 20 }, "lines of the first node")
	readers := []uint64{4, 5}
	for _, id := range readers {
		all[id] = joiner(t, id, all[2])
		all[id].start(t, weft.Configure(coded))
		changed(t, func(ctx context.Context) error { return all[2].group.AddLearner(ctx, id, all[id].options.Listen) })
	}
	changed(t, func(ctx context.Context) error { return all[2].group.TransferLeader(ctx, 1) })

	// A leader codes once all members have said that they read codes; then readers put payloads together from units.
	large := strings.Repeat("x", 100<<10)
	eventually(t, func() bool {
		all[3].propose(t, large)
		return !slices.ContainsFunc(readers, func(id uint64) bool {
			return all[id].group.Host().Status().Coding.Counters.CompletedBytes < uint64(len(large))
		})
	}, "readers to put a payload together")
	require.NoError(t, process.Kill())
	acked := process.said(t, "acked")
	last := all[2].propose(t, "under the next leader")
	require.NotEqual(t, uint64(1), all[2].group.Leader())
	for _, id := range readers {
		for name, policy := range map[string][]weft.ReadOption{
			"ReadIndex": nil, "quorum": {weft.Quorum()}, "responder": {weft.AtResponder()}, "stale": {weft.Stale(time.Millisecond)},
		} {
			_, err := all[id].group.Read(within(t), policy...)
			require.NoError(t, err, "%s at reader %d", name, id)
		}
		lines := all[id].read(t)
		require.Subset(t, lines, acked, "all that the killed leader acknowledged, at reader %d", id)
		require.Contains(t, lines, large)
		require.GreaterOrEqual(t, len(lines), last)
	}
	voters, learners := all[4].ids()
	require.Equal(t, []uint64{1, 2, 3}, voters)
	require.Equal(t, readers, learners)
}
