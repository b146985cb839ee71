// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
)

// blindFS takes what is written to segments, looks whose bytes they are, and
// forgets them.
type blindFS struct {
	vfs.FS
	payload []byte
	whole   int // writes of all of payload, from where the caller has it
}

func (fs *blindFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return &blindFile{File: f, fs: fs}, err
}

type blindFile struct {
	vfs.File
	fs *blindFS
}

func (f *blindFile) WriteAt(b []byte, _ int64) (int, error) {
	if len(b) == len(f.fs.payload) && unsafe.SliceData(b) == unsafe.SliceData(f.fs.payload) {
		f.fs.whole++
	}
	return len(b), nil
}

// TestPayloadsAreNotCopied: large data go to the file system from where the
// caller has them, and appending them allocates next to nothing.
func TestPayloadsAreNotCopied(t *testing.T) {
	fs := &blindFS{FS: vfs.NewMem(), payload: make([]byte, 1<<20)}
	e, err := storage.Open("data", storage.Options{Identity: testIdentity, FS: fs, Manual: true, CacheBytes: -1})
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	const writes = 200 // several segments
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := uint64(1); i <= writes; i++ {
		ent := &pb.Entry{Term: new(uint64(1)), Index: new(i), Data: fs.payload}
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: []*pb.Entry{ent}}))
	}
	runtime.ReadMemStats(&after)
	perWrite := (after.TotalAlloc - before.TotalAlloc) / writes
	t.Logf("%d bytes allocated for each write of 1 MB", perWrite)
	require.Equal(t, writes, fs.whole)
	require.Greater(t, e.Stats().Segments, 2)
	require.Less(t, perWrite, uint64(16<<10))
	require.NoError(t, e.Close())
}

// TestEmptyEntriesCountInTheCache: an entry without data has 8 bytes in the log, and many times that in memory.
func TestEmptyEntriesCountInTheCache(t *testing.T) {
	const entries, cache = 5000, 100_000
	e, err := storage.Open("data", storage.Options{Identity: testIdentity, FS: vfs.NewMem(), Manual: true, CacheBytes: cache})
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	for i := uint64(1); i <= entries; i++ {
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(i)}}}))
	}
	all, err := g.Entries(1, entries+1, 1<<30)
	require.NoError(t, err)
	kept := len(all) - int(e.Stats().ReadEntries)
	require.Positive(t, kept)
	require.Less(t, kept*int(unsafe.Sizeof(pb.Entry{})), cache)
	require.NoError(t, e.Close())
}
