// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"
)

func TestRunIsNoWordOfACommit(t *testing.T) {
	m := Message{Body: Named{Raft: Raft{Message: &pb.Message{Type: pb.MsgApp.Enum(), Term: new(uint64(5)), Index: new(uint64(7))}}, Run: Run{Count: 2}}}
	place, ok := PlaceOf(m)
	require.True(t, ok)
	require.Equal(t, Place{Term: 5, Index: 7}, place)
}

func TestSupersedes(t *testing.T) {
	queued := Place{Term: 5, Index: 10}
	for what, c := range map[string]struct {
		newer, older Place
		want         bool
	}{
		"the leader went back":            {Place{Term: 5, Index: 7}, queued, true},
		"to the same place":               {Place{Term: 5, Index: 10}, queued, true},
		"in a later term":                 {Place{Term: 6, Index: 10}, queued, true},
		"in an earlier term":              {Place{Term: 4, Index: 10}, queued, false},
		"the leader goes on":              {Place{Term: 5, Index: 13}, queued, false},
		"word of a commit, in between":    {Place{Term: 5, Index: 13, Empty: true}, queued, false},
		"word of a commit has no entries": {Place{Term: 5, Index: 10, Empty: true}, queued, false},
		"a later word of a commit":        {Place{Term: 5, Index: 13, Empty: true}, Place{Term: 5, Index: 13, Empty: true}, true},
	} {
		require.Equal(t, c.want, c.newer.Supersedes(c.older), what)
	}
}

func TestPlaceOf(t *testing.T) {
	for i, m := range samples() {
		p, ok := PlaceOf(m)
		require.Equal(t, i == 0 || m.Kind() == KindNamed || m.Kind() == KindRun, ok, "only the first is a MsgApp, and some have names")
		if i == 0 {
			require.Equal(t, Place{Term: 3, Index: 6}, p)
		}
	}
	_, ok := PlaceOf(Message{Body: Raft{Message: &pb.Message{Type: pb.MsgHeartbeat.Enum()}}})
	require.False(t, ok)
}
