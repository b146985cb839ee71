// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
)

// cachingFS is a file system as kernels have it: a process sees what is in memory,
// a sync brings it to the disk. A sync that fails drops it: memory goes on showing
// it, and no later sync brings it to the disk. Names are on the disk at once.
type cachingFS struct {
	*vfs.MemFS // what processes see
	disk       *vfs.MemFS
	dirty      map[string][][2]int64
	fail       bool // the next sync of a file fails
}

func newCachingFS() *cachingFS {
	return &cachingFS{MemFS: vfs.NewMem(), disk: vfs.NewMem(), dirty: map[string][][2]int64{}}
}

func (fs *cachingFS) MkdirAll(name string, mode os.FileMode) error {
	return errors.Join(fs.MemFS.MkdirAll(name, mode), fs.disk.MkdirAll(name, mode))
}

func (fs *cachingFS) Rename(from, to string) error {
	fs.dirty[to] = fs.dirty[from]
	delete(fs.dirty, from)
	return errors.Join(fs.MemFS.Rename(from, to), fs.disk.Rename(from, to))
}

func (fs *cachingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.opened(name)(fs.MemFS.Create(name, c))
}

func (fs *cachingFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return fs.opened(name)(fs.MemFS.OpenReadWrite(name, c, o...))
}

func (fs *cachingFS) opened(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		on, err := fs.disk.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
		return &cachedFile{File: f, disk: on, fs: fs, name: name}, err
	}
}

type cachedFile struct {
	vfs.File
	disk vfs.File
	fs   *cachingFS
	name string
	end  int64 // of what Write wrote
}

func (f *cachedFile) Write(b []byte) (int, error) {
	f.fs.dirty[f.name] = append(f.fs.dirty[f.name], [2]int64{f.end, f.end + int64(len(b))})
	f.end += int64(len(b))
	return f.File.Write(b)
}

func (f *cachedFile) WriteAt(b []byte, off int64) (int, error) {
	f.fs.dirty[f.name] = append(f.fs.dirty[f.name], [2]int64{off, off + int64(len(b))})
	return f.File.WriteAt(b, off)
}

func (f *cachedFile) SyncData() error { return f.Sync() }

func (f *cachedFile) Sync() error {
	dirty := f.fs.dirty[f.name]
	delete(f.fs.dirty, f.name)
	if f.fs.fail {
		f.fs.fail = false
		return errors.New("the disk does not answer")
	}
	for _, d := range dirty {
		b := make([]byte, d[1]-d[0])
		if _, err := f.ReadAt(b, d[0]); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := f.disk.WriteAt(b, d[0]); err != nil {
			return err
		}
	}
	return nil
}

// TestFailedSyncIsForgotten: what an engine finds after one whose sync failed it
// shows, and others act on it. So it must survive a power failure, although a sync by
// itself would not make it.
func TestFailedSyncIsForgotten(t *testing.T) {
	for failing := 1; failing <= 12; failing++ {
		fs := newCachingFS()
		opts := storage.Options{Identity: testIdentity, FS: fs, Manual: true, SegmentBytes: storage.MinSegmentBytes}
		e, err := storage.Open("data", opts)
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		acknowledged := uint64(0)
		for i := uint64(1); i <= 12; i++ {
			fs.fail = i == uint64(failing)
			entry := &pb.Entry{Term: new(uint64(1)), Index: new(i), Data: make([]byte, 700)}
			if g.AppendWait(t.Context(), storage.Write{Entries: []*pb.Entry{entry}}) != nil {
				break
			}
			acknowledged = i
		}
		require.EqualValues(t, failing-1, acknowledged)
		require.ErrorIs(t, e.Close(), storage.ErrFailed)

		e, err = storage.Open("data", opts)
		require.NoError(t, err)
		g, err = e.Group(1)
		require.NoError(t, err)
		shown, err := g.LastIndex()
		require.NoError(t, err)
		require.GreaterOrEqual(t, shown, acknowledged)

		opts.FS = fs.disk // power fails
		e, err = storage.Open("data", opts)
		require.NoError(t, err, "sync %d failed", failing)
		g, err = e.Group(1)
		require.NoError(t, err)
		last, err := g.LastIndex()
		require.NoError(t, err)
		require.Equal(t, shown, last, "sync %d failed", failing)
		entries, err := g.Entries(1, last+1, 1<<20)
		require.NoError(t, err, "sync %d failed", failing)
		require.Len(t, entries, int(last))
		require.NoError(t, e.Close())
	}
}
