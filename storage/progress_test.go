// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
)

// While a write waits, the number of ended writes stands still, and the wait grows, for every group
// of the engine; both end with the write.
func TestProgressTellsWhetherWritesEnd(t *testing.T) {
	e, err := storage.Open("log", storage.Options{FS: vfs.NewMem(), Identity: storage.Identity{Cluster: 1, Node: 1}, Manual: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	busy, err := e.Group(1)
	require.NoError(t, err)
	other, err := e.Group(2)
	require.NoError(t, err)
	ended, waits := other.Progress()
	require.False(t, waits)
	require.Zero(t, e.Stats().Waits)

	for term := range uint64(3) {
		require.NoError(t, busy.Append(storage.Write{HardState: &pb.HardState{Term: new(term + 1)}}, nil))
	}
	still, waits := other.Progress()
	require.True(t, waits)
	require.Equal(t, ended, still)
	before := e.Stats().Waits
	time.Sleep(time.Microsecond)
	require.Greater(t, e.Stats().Waits, before)

	wrote, err := e.Step()
	require.NoError(t, err)
	require.True(t, wrote)
	after, waits := other.Progress()
	require.False(t, waits)
	require.Equal(t, ended+3, after)
	require.Zero(t, e.Stats().Waits)
}
