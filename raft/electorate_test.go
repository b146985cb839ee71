// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		want, _, err := changed(base, cc)
		require.NoError(t, err)
		got, progress, err := changed(follows, cc)
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

// TestBootstrapTwice: a host puts the changes of a bootstrap into force once more, as
// it applies them. A later change, which it was not handed out, waits all the same.
func TestBootstrapTwice(t *testing.T) {
	rn, err := NewRawNode(&Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: NewMemoryStorage(), MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &Coding{}})
	require.NoError(t, err)
	require.NoError(t, rn.Bootstrap([]Peer{{ID: 1}, {ID: 2}, {ID: 3}}))
	r := rn.raft
	e := copyEntry(&pb.Entry{Type: pb.EntryConfChangeV2.Enum()}, entryID{term: 2, index: 4})
	r.log.appendAfter(r.log.last(), []*pb.Entry{e})
	ents := rn.offer().CommittedEntries
	require.Len(t, ents, 3)
	r.log.acceptApplying(ents, true)
	for _, e := range ents {
		cc, err := decodeConfChange(e)
		require.NoError(t, err)
		r.applyConfChange(cc)
	}
	require.Equal(t, []uint64{4}, r.electorate.changes)
}
