// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// TestStartLooksThroughARecycledFileAtOnce: each segment of a log that is purged is a recycled file, so a start behind a crash
// looks for frames in a file full of other bytes. It must not make an error for each of millions of places, which took
// 6 s for 64 MiB.
func TestStartLooksThroughARecycledFileAtOnce(t *testing.T) {
	const size = 1 << 20
	opts := crashOptions(unlocked{vfs.NewMem()})
	opts.SegmentBytes = size
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	for i := uint64(1); e.Stats().Recycled == 0; i++ {
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, i, 1, 50_000)}))
		require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(i)}, nil))
		require.NoError(t, g.Compact(i))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, err = storage.Open("data", opts) // the process was killed
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Greater(t, e.Recovery().ReadBytes, int64(size))
	require.Less(t, after.Mallocs-before.Mallocs, uint64(size/80))
	require.NoError(t, e.Close())
}

// TestHeadersInEntriesCostNoSums: a client has stored bytes that look like headers of long
// frames, and they stand where a recycled file goes on behind the log's end. Without a guess of the
// numbers of frames, a start reads the file a few times, and not once for each header.
func TestHeadersInEntriesCostNoSums(t *testing.T) {
	const size, long, forged = 4 << 20, 2 << 20, 300
	mem := vfs.NewCrashableMem()
	e, err := storage.Open("data", crashOptions(mem))
	require.NoError(t, err)
	ops := []op{{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 1, 2, 50)}}}
	require.NoError(t, ops[0].toEngine(e, nil))
	require.NoError(t, e.Sync(t.Context()))
	name := segmentFiles(t, mem)[0]
	whole := readFile(t, mem, name)
	places := frames(whole)
	file := make([]byte, size)
	copy(file, whole)
	header := [56]byte(whole[places[1]:]) // of a write, in this segment
	binary.LittleEndian.PutUint64(header[16:], 1<<40)
	binary.LittleEndian.PutUint64(header[24:], 1<<39)
	binary.LittleEndian.PutUint32(header[40:], long)
	for i := range forged {
		copy(file[64<<10+4096*i:], header[:])
	}
	writeFile(t, mem, name, file)
	e, err = storage.Open("data", crashOptions(unlocked{mem}))
	require.NoError(t, err)
	require.Less(t, e.Recovery().ReadBytes, int64(4*size))
	_, err = prefix(e, ops, 1)
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// TestHeadersInEntriesAreNoTornWrites: what clients have stored in a recycled file is not reported as writes that
// a crash has torn.
func TestHeadersInEntriesAreNoTornWrites(t *testing.T) {
	opts := crashOptions(unlocked{vfs.NewMem()})
	opts.SegmentBytes = 64 << 10
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	data := make([]byte, 57*1000) // at all places of an alignment
	for i := range 1000 {
		header := data[57*i:]
		copy(header, "WLF1")
		binary.LittleEndian.PutUint64(header[8:], uint64(1+i%21))
		binary.LittleEndian.PutUint64(header[16:], 1<<40)
	}
	for i := uint64(1); e.Stats().Recycled == 0; i++ {
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(i), Data: data}}}))
		require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(i)}, nil))
		require.NoError(t, g.Compact(i))
	}
	require.NoError(t, g.AppendWait(t.Context(), storage.Write{HardState: &pb.HardState{Term: new(uint64(1))}}))
	e, err = storage.Open("data", opts) // the process was killed
	require.NoError(t, err)
	require.Zero(t, e.Recovery().CutBytes)
	require.NoError(t, e.Close())
}

// TestRecycledFileThatWasNotBegunHasNoTail: power fails when a purged file has the name of a
// new segment, and none of its bytes. What it has of its earlier life are no torn writes.
func TestRecycledFileThatWasNotBegunHasNoTail(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var crashed []*vfs.MemFS
	begun := map[string]bool{}
	opts := crashOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, ".seg") && !begun[op.Path] {
			begun[op.Path] = true
			crashed = append(crashed, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	})))
	opts.SegmentBytes = storage.MinSegmentBytes
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	for i := uint64(1); i < 40; i++ {
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, i, 1, 1500)}))
		require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(i)}, nil))
		require.NoError(t, g.Compact(i))
	}
	require.Positive(t, e.Stats().Recycled)
	require.NoError(t, e.Close())
	for _, fs := range crashed {
		e, err := storage.Open("data", crashOptions(fs))
		require.NoError(t, err)
		require.Zero(t, e.Recovery().CutBytes, "%+v", e.Recovery())
		require.NoError(t, e.Close())
	}
}
