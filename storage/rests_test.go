// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"
)

// The writer's goroutine is free in a callback if that is the only thing to do,
// and there is nobody else who might have something.
func TestRests(t *testing.T) {
	e, err := Open("log", Options{FS: vfs.NewMem(), Identity: Identity{Cluster: 1, Node: 1}, Manual: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	g, err := e.Group(1)
	require.NoError(t, err)
	var rests []bool
	note := func(err error) {
		require.NoError(t, err)
		rests = append(rests, g.Rests())
	}
	index := uint64(0)
	write := func(done func(error)) {
		index++
		require.NoError(t, g.Append(Write{Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(index)}}}, done))
	}
	steps := func() []bool {
		rests = nil
		for {
			wrote, err := e.Step()
			require.NoError(t, err)
			if !wrote {
				return rests
			}
		}
	}
	write(note)
	require.Equal(t, []bool{true}, steps())
	write(note)
	write(note)
	require.Equal(t, []bool{false, false}, steps(), "another callback is due, or was before")
	write(func(error) { write(note); note(nil) })
	require.Equal(t, []bool{false, true}, steps(), "another write waits")
	_, err = e.Group(2)
	require.NoError(t, err)
	write(note)
	require.Equal(t, []bool{false}, steps(), "there is another group")
}
