// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package electorate

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// TestPendingMembersAreNone follows members of a configuration to come, as a leader
// with two changes in its log does: the change that makes them members must have the
// outcome that it has at nodes that do not follow them.
func TestPendingMembersAreNone(t *testing.T) {
	base := tracker.MakeProgressTracker(8, 0)
	base.Voters[0] = map[uint64]struct{}{1: {}, 2: {}}
	follows := base
	base.Progress = tracker.ProgressMap{1: {}, 2: {}}
	follows.Progress = tracker.ProgressMap{1: {}, 2: {}, 3: {IsLearner: true, Match: 7}, 4: {Match: 7}}

	for _, text := range []string{"l3", "v4", "l3 v4 r2", "l3 l2 v4"} {
		changes, err := pb.ConfChangesFromString(text)
		require.NoError(t, err)
		cc := &pb.ConfChangeV2{Changes: changes}
		want, _, err := changed(confchange.Changer{Tracker: inForce(base), LastIndex: 1}, cc)
		require.NoError(t, err)
		got, progress, err := changed(confchange.Changer{Tracker: inForce(follows), LastIndex: 1}, cc)
		require.NoError(t, err)
		require.Equal(t, want.String(), got.String(), text)
		for id := range progress {
			_, learner := got.Learners[id]
			_, next := got.LearnersNext[id]
			require.True(t, learner || next || isVoter(got, id), "%s: %d is no member", text, id)
		}
	}
	require.Len(t, inForce(follows).Progress, 2)
	require.Len(t, inForce(base).Progress, 2)
}
