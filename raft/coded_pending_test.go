// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
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

// TestWordsOfFormerMembers: what a member said of itself is not held for the word of
// another that comes under its id, also where this node saw neither leave nor come,
// and whatever entries from between say.
func TestWordsOfFormerMembers(t *testing.T) {
	parsed := func(text string) *pb.ConfChangeV2 {
		changes, err := pb.ConfChangesFromString(text)
		require.NoError(t, err)
		return &pb.ConfChangeV2{Changes: changes}
	}
	change := func(r *raft, text string) { r.applyConfChange(parsed(text)) }
	for name, replace := range map[string]func(r *raft){
		"entry from between": func(r *raft) {
			change(r, "r3")
			r.coded.account(3).reads(true)
			change(r, "v3")
		},
		"further changes in the log": func(r *raft) {
			for i, text := range []string{"r3", "v3", "l4"} {
				data, err := proto.Marshal(parsed(text))
				require.NoError(t, err)
				ents := []*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Term: new(uint64(1)), Index: new(uint64(i) + 2), Data: data}}
				r.log.appendAfter(r.log.last(), ents)
				r.changesAppended(ents)
			}
			change(r, "r3")
			require.Contains(t, r.electorate.everybody, uint64(3))
			change(r, "v3")
		},
		"snapshot": func(r *raft) {
			took, err := (&follower{raft: r}).restore(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
				Index: new(uint64(9)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
			}})
			require.True(t, took)
			require.NoError(t, err)
		},
	} {
		ms := NewMemoryStorage()
		require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
		}}))
		r, err := newRaft(&Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: ms, MaxInflightMsgs: 8, Coding: &Coding{}})
		require.NoError(t, err)
		a := r.coded.account(3)
		a.reads(true)
		a.released = 5
		replace(r)
		require.Nil(t, r.coded.accounts[3], name)
	}
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
	r.changesAppended([]*pb.Entry{e})
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
