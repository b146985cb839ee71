// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/electorate"
)

// TestBootstrapTwice: a host puts the changes of a bootstrap into force once more, as
// it applies them. A later change, which it was not handed out, waits all the same.
func TestBootstrapTwice(t *testing.T) {
	rn, err := NewRawNode(&Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: NewMemoryStorage(), MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &Coding{}})
	require.NoError(t, err)
	require.NoError(t, rn.Bootstrap([]Peer{{ID: 1}, {ID: 2}, {ID: 3}}))
	r := rn.raft
	e := copyEntry(&pb.Entry{Type: pb.EntryConfChangeV2.Enum()}, ecraft.ID{Term: 2, Index: 4})
	r.log.appendAfter(r.log.last(), []*pb.Entry{e})
	ents := rn.offer().CommittedEntries
	require.Len(t, ents, 3)
	r.log.acceptApplying(ents, true)
	for _, e := range ents {
		cc, err := electorate.Decode(e)
		require.NoError(t, err)
		r.applyConfChange(cc)
	}
	require.Equal(t, uint64(4), r.members.FirstPending())
}
