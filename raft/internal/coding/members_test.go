// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft/internal/extend"
)

// A leader that cannot apply a change, which makes a learner a voter or removes a
// voter, hands over to the member that has applied most and knows that it votes: to
// the learner of before if it has applied the change, and else to another.
func TestStuckLeaderFindsSuccessor(t *testing.T) {
	type indexes map[uint64]uint64
	voters := func(ids ...uint64) map[uint64]struct{} {
		v := map[uint64]struct{}{}
		for _, id := range ids {
			v[id] = struct{}{}
		}
		return v
	}
	for _, tt := range []struct {
		name    string
		newest  map[uint64]struct{}
		applied indexes
		want    uint64
	}{
		{"nobody has more", voters(1, 2, 3, 4), indexes{2: 4, 3: 4, 4: 4}, 0},
		{"who leaves", voters(1, 4), indexes{2: 9, 3: 4, 4: 6}, 4},
		{"a learner that votes by now", voters(1, 2, 3, 4), indexes{2: 8, 3: 9, 4: 8}, 3},
		{"a learner that does not know", voters(1, 2, 3, 4), indexes{2: 4, 3: 6, 4: 5}, 4},
		{"a learner that stays one", voters(1, 4), indexes{2: 9, 3: 9, 4: 4}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.join(4, false)
			delete(f.members.Voters[0], 3)
			f.join(3, true)
			f.applied, f.changes, f.newest = 4, []uint64{7}, tt.newest
			l := f.leads()
			for id, applied := range tt.applied {
				f.heard(id)
				f.accounts.account(id).applied = applied
			}
			got, _ := l.stuck.successor()
			require.Equal(t, tt.want, got)
		})
	}
}

// Where a change waits for entries that too many have released, the leader asks the
// voters to come that have not; such a one asks its host for a snapshot, now and
// then, and for no other node.
func TestMembersAreAskedToRelease(t *testing.T) {
	f := newFake(t)
	l := f.leads()
	l.check.voters = f.members.Voters[0]
	f.accounts.account(2).released = 9
	l.changes.askRelease(9)
	f.perform()
	require.Len(t, f.sent, 1)
	ask := f.sent[0]
	require.Equal(t, uint64(3), ask.GetTo())

	g := newFake(t)
	g.follow(2)
	g.applied, g.committed = 9, 9
	for range 9 {
		g.entries = append(g.entries, &pb.Entry{})
	}
	arrives := func(from, index, want uint64) {
		t.Helper()
		m := proto.Clone(ask).(*pb.Message)
		m.From, m.Index = &from, &index
		require.NoError(t, g.Step(m))
		require.Equal(t, want, g.snapshots)
	}
	arrives(2, 10, 0)
	arrives(3, 9, 0)
	arrives(2, 9, 1)
	arrives(2, 9, 1)
	for range 10 {
		g.Tick()
	}
	arrives(2, 9, 2)
}

// What a member said of itself is not held for the word of another that comes under
// its id, whatever entries from between say.
func TestAccountEndsWhenItsMemberLeaves(t *testing.T) {
	f := newFake(t)
	f.accounts.account(3).setCapable(true)
	with, without := f.members.Progress, tracker.ProgressMap{1: f.members.Progress[1], 2: f.members.Progress[2]}
	f.members.Progress = without
	f.Switched(with)
	require.Nil(t, f.accounts.of[3], "it has left")
	f.accounts.account(3).setCapable(true) // an entry from between names it
	f.members.Progress = with
	f.Switched(without)
	require.Nil(t, f.accounts.of[3], "another has come")
	f.accounts.account(3).setCapable(true)
	f.Switched(nil)
	require.Nil(t, f.accounts.of[3], "after a snapshot nothing is known")
}

// A winner waits for no answer of a member whose vote tells that it does not code (rule L15). A vote of an earlier term tells
// nothing: the member may code since.
func TestVotesTellInTheirTermWhoDoesNotCode(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(*pb.Message)
		plain bool
	}{
		"no mark":                         {func(*pb.Message) {}, true},
		"the voter's term":                {func(m *pb.Message) { m.LogTerm = new(uint64(2)) }, false},
		"members, of an earlier version":  {func(m *pb.Message) { m.Context = []byte{} }, false},
		"a refusal":                       {func(m *pb.Message) { m.Reject = new(true) }, false},
		"a pre-vote":                      {func(m *pb.Message) { m.Type = pb.MsgPreVoteResp.Enum() }, false},
		"a vote of an earlier term, late": {func(m *pb.Message) { m.Term = new(uint64(1)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			turn := func(role extend.Role, term uint64) {
				f.role, f.term = role, term
				f.Turned(role, term, 0)
			}
			turn(extend.Candidate, 2)
			m := &pb.Message{Type: pb.MsgVoteResp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2))}
			tt.edit(m)
			f.Arrives(m)
			turn(extend.Winner, 2)
			require.Equal(t, tt.plain, f.recovery.said[2])
			turn(extend.Candidate, 3)
			turn(extend.Winner, 3)
			require.False(t, f.recovery.said[2])
		})
	}
}
