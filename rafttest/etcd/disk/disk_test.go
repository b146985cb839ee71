// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// envelope is an entry's data that Weft takes for an envelope.
const envelope = "\xc3\x9dWEFT\x8e\xa1 and so on"

func entries(from uint64, data ...string) (all []*raftpb.Entry) {
	for i, d := range data {
		all = append(all, &raftpb.Entry{Index: new(from + uint64(i)), Term: new(uint64(1)), Type: raftpb.EntryNormal.Enum(), Data: []byte(d)})
	}
	return all
}

func TestLogIsReadFromItsLastSnapshotOn(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir, "")
	require.ErrorIs(t, err, os.ErrNotExist)

	lg := zap.NewNop()
	require.NoError(t, os.MkdirAll(datadir.ToSnapDir(dir), 0o700))
	w, err := wal.Create(lg, datadir.ToWALDir(dir), nil)
	require.NoError(t, err)
	state := &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(4))}
	require.NoError(t, w.Save(state, entries(1, "plain", envelope, envelope, "plain")))
	_, err = Read(dir, "")
	require.ErrorIs(t, err, errRuns)
	require.NoError(t, w.Close())

	l, err := Read(dir, "")
	require.NoError(t, err)
	require.Equal(t, Log{First: 1, Entries: 4, Envelopes: 2, LastEnvelope: 3}, l)
	require.Equal(t, "4 entries from index 1 on, 2 coded, the last at 3", l.String())

	w, err = wal.Open(lg, datadir.ToWALDir(dir), &walpb.Snapshot{Index: new(uint64(0)), Term: new(uint64(0))})
	require.NoError(t, err)
	_, _, _, err = w.ReadAll()
	require.NoError(t, err)
	members := &raftpb.ConfState{Voters: []uint64{1}}
	require.NoError(t, snap.New(lg, datadir.ToSnapDir(dir)).SaveSnap(&raftpb.Snapshot{
		Data:     []byte("state"),
		Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(3)), Term: new(uint64(1)), ConfState: members},
	}))
	require.NoError(t, w.SaveSnapshot(&walpb.Snapshot{Index: new(uint64(3)), Term: new(uint64(1)), ConfState: members}))
	require.NoError(t, w.Close())

	elsewhere := filepath.Join(t.TempDir(), "wal")
	require.NoError(t, os.Rename(datadir.ToWALDir(dir), elsewhere))
	l, err = Read(dir, elsewhere)
	require.NoError(t, err)
	require.Equal(t, Log{First: 4, Entries: 1}, l)
	require.Equal(t, "1 entries from index 4 on, none coded", l.String())

	w, err = wal.Open(lg, elsewhere, &walpb.Snapshot{Index: new(uint64(3)), Term: new(uint64(1))})
	require.NoError(t, err)
	_, _, _, err = w.ReadAll()
	require.NoError(t, err)
	last := &raftpb.SnapshotMetadata{Index: new(uint64(4)), Term: new(uint64(1)), ConfState: members}
	require.NoError(t, snap.New(lg, datadir.ToSnapDir(dir)).SaveSnap(&raftpb.Snapshot{Data: []byte("state"), Metadata: last}))
	require.NoError(t, w.SaveSnapshot(&walpb.Snapshot{Index: last.Index, Term: last.Term, ConfState: members}))
	require.NoError(t, w.Close())
	l, err = Read(dir, elsewhere)
	require.NoError(t, err)
	require.Equal(t, "0 entries from index 5 on, none coded", l.String())
}
