// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

func TestSecondCloseDoesNothing(t *testing.T) {
	for name, manual := range map[string]bool{"writer": false, "manual": true} {
		t.Run(name, func(t *testing.T) {
			opts := crashOptions(vfs.NewMem())
			opts.Manual = manual
			e, err := storage.Open("data", opts)
			require.NoError(t, err)
			g, err := e.Group(1)
			require.NoError(t, err)
			done := make(chan error, 1)
			require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(5, 1, 3, 10)}, func(err error) { done <- err }))
			var closing sync.WaitGroup
			for range 3 {
				closing.Go(func() {
					if err := e.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
					if len(done) == 0 {
						t.Error("it returned before all was written")
					}
				})
			}
			closing.Wait()
			require.NoError(t, <-done)
			require.NoError(t, e.Close())
			require.ErrorIs(t, g.Append(storage.Write{}, nil), storage.ErrClosed)
		})
	}
}

func TestWaitsWithEndedContextQueueNothing(t *testing.T) {
	e, err := storage.Open("data", crashOptions(vfs.NewMem()))
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.AppendWait(ctx, storage.Write{Entries: storagetest.Entries(5, 1, 3, 10)}), context.Canceled)
	require.ErrorIs(t, e.Sync(ctx), context.Canceled)
	last, err := g.LastIndex()
	require.NoError(t, err)
	require.Zero(t, last)
	require.NoError(t, e.Close())
}

// A directory has one engine, whatever the names. The refusals take nothing from the first engine.
func TestDirectoryUnderAnotherNameIsLocked(t *testing.T) {
	parent := t.TempDir()
	t.Chdir(parent)
	dir, link := filepath.Join(parent, "data"), filepath.Join(parent, "link")
	e, err := storage.Open(dir, crashOptions(vfs.Default))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(dir, link))
	for range 2 {
		for _, name := range []string{dir, link, "data", filepath.Join("link", ".")} {
			_, err := storage.Open(name, crashOptions(vfs.Default))
			require.ErrorIs(t, err, storage.ErrLocked, name)
		}
	}
	require.NoError(t, e.Close())
	e, err = storage.Open(link, crashOptions(vfs.Default))
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// TestLogEndsBeforeTheLastNumber: behind an entry of the highest index no other can come, and no log can say
// where it ends. Such writes are refused: what a log takes it can open again.
func TestLogEndsBeforeTheLastNumber(t *testing.T) {
	const most = math.MaxUint64
	opts := storage.Options{Identity: testIdentity, FS: vfs.NewMem(), Manual: true}
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	snapshot := func(index uint64) *pb.Snapshot {
		return &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(index), Term: new(uint64(1))}}
	}
	require.ErrorIs(t, g.AppendWait(t.Context(), storage.Write{Snapshot: snapshot(most)}), storage.ErrInvalid)
	require.NoError(t, g.AppendWait(t.Context(), storage.Write{Snapshot: snapshot(most - 3), Entries: storagetest.Entries(1, most-2, 1, 10)}))
	for n := 2; n <= 3; n++ {
		require.ErrorIs(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, most-1, n, 10)}), storage.ErrInvalid)
	}
	require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, most-1, 1, 10)}))
	require.NoError(t, e.Close())
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	g, err = e.Group(1)
	require.NoError(t, err)
	last, err := g.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, uint64(most-1), last)
	entries, err := g.Entries(most-2, most, 1<<20)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.NoError(t, e.Close())
}
