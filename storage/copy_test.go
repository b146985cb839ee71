// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
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

// shortWrites is a file system that counts the writes that are neither a frame nor the byte that
// makes a file longer.
type shortWrites struct {
	vfs.FS
	n int
}

func (fs *shortWrites) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return &shortFile{f, fs}, err
}

type shortFile struct {
	vfs.File
	fs *shortWrites
}

func (f *shortFile) WriteAt(b []byte, off int64) (int, error) {
	info, err := f.Stat()
	if len(b) < 56 && off < info.Size() {
		f.fs.n++
	}
	n, werr := f.File.WriteAt(b, off)
	return n, errors.Join(err, werr)
}

// TestLargeEntryIsFollowedByNoWriteOfZeros: a large entry is two writes, for its frame's head
// and for itself, and where its frame ends is seen by the next.
func TestLargeEntryIsFollowedByNoWriteOfZeros(t *testing.T) {
	fs := &shortWrites{FS: vfs.NewCrashableMem()}
	opts := crashOptions(fs)
	opts.SegmentBytes = storage.DefaultSegmentBytes
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	fs.n = 0
	var ops []op
	for i := range uint64(16) { // small ones in between
		o := op{group: 1, write: storage.Write{Entries: storagetest.Entries(1, i+1, 1, int(i+i%2*(64<<10)))}}
		ops = append(ops, o)
		require.NoError(t, o.toEngine(e, nil))
		require.NoError(t, e.Sync(t.Context()))
	}
	require.Zero(t, fs.n)
	require.NoError(t, e.Close())
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	require.NoError(t, compareAll(e, modelsOf(t, ops)))
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
