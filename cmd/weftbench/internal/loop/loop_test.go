// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func entry(index uint64, size int) *pb.Entry {
	return &pb.Entry{Index: proto.Uint64(index), Term: proto.Uint64(2), Data: make([]byte, size)}
}

// Saved entries are in the log after a restart, and a half-written entry is cut.
func TestWAL(t *testing.T) {
	dir := t.TempDir()
	w, err := openWAL(dir, "", []uint64{1, 2, 3})
	require.NoError(t, err)
	hard := &pb.HardState{Term: proto.Uint64(2), Vote: proto.Uint64(3), Commit: proto.Uint64(2)}
	require.NoError(t, w.save(hard, []*pb.Entry{entry(2, 10), entry(3, 10)}, true))
	require.NoError(t, w.save(nil, []*pb.Entry{entry(4, 10)}, true))
	size := w.size
	require.NoError(t, w.file.Close())
	require.NoError(t, os.Truncate(filepath.Join(dir, walName), size-1))

	w, err = openWAL(dir, "", nil)
	require.NoError(t, err)
	last, err := w.mem.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 3, last)
	got, conf, err := w.mem.InitialState()
	require.NoError(t, err)
	require.True(t, proto.Equal(hard, got))
	require.Equal(t, []uint64{1, 2, 3}, conf.GetVoters())
	require.NoError(t, w.save(nil, []*pb.Entry{entry(4, 20)}, true))
	require.NoError(t, w.file.Close())
}

// The log drops what the state has, but for what laggards may need, and is as
// short after a restart.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	w, err := openWAL(dir, "", []uint64{1})
	require.NoError(t, err)
	for i := uint64(2); i < 42; i++ {
		require.NoError(t, w.save(nil, []*pb.Entry{entry(i, 1<<20)}, false))
	}
	require.NoError(t, w.compact(41))
	for range 2 {
		first, err := w.mem.FirstIndex()
		require.NoError(t, err)
		require.EqualValues(t, 42-keepBytes>>20, first)
		require.Less(t, w.size, int64(keepBytes+1<<20))
		require.NoError(t, w.file.Close())
		w, err = openWAL(dir, "", nil)
		require.NoError(t, err)
	}
	require.NoError(t, w.file.Close())
}

// A snapshot carries the whole state, and takes the place of another.
func TestState(t *testing.T) {
	a, err := OpenState(t.TempDir(), "")
	require.NoError(t, err)
	b, err := OpenState(t.TempDir(), "")
	require.NoError(t, err)
	_, _, err = a.Freeze().Read()
	require.Error(t, err, "there is no state yet")
	require.NoError(t, a.Apply(5, [][]byte{EncodePut("k", []byte("v")), EncodePut("l", nil)}))
	require.NoError(t, b.Apply(3, [][]byte{EncodePut("old", []byte("v"))}))
	data, index, err := a.Freeze().Read()
	require.NoError(t, err)
	require.EqualValues(t, 5, index)
	require.Error(t, b.Restore(data[:len(data)-1], index))
	require.NoError(t, b.Restore(data, index))
	v, err := b.get(b.db, dataKey("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(v))
	v, err = b.get(b.db, dataKey("old"))
	require.NoError(t, err)
	require.Nil(t, v)
	require.EqualValues(t, 5, b.applied)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}
