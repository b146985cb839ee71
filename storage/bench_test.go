// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// BenchmarkAppend appends one entry at a time to each group, on disk with sync,
// and waits for it, then compacts as a host does.
func BenchmarkAppend(b *testing.B) {
	for _, groups := range []int{1, 16} {
		for _, size := range []int{16, 1 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("groups=%d/size=%d", groups, size), func(b *testing.B) {
				e, err := storage.Open(b.TempDir(), storage.Options{Identity: testIdentity})
				require.NoError(b, err)
				data := storagetest.Entry(1, 1, size).Data
				b.SetBytes(int64(size))
				b.ReportAllocs()
				before := e.Stats()
				b.ResetTimer()
				appendParallel(b, e, groups, data)
				b.StopTimer()
				s := e.Stats()
				b.ReportMetric(float64(s.WrittenBytes-before.WrittenBytes)/float64(s.PayloadBytes), "diskbytes/byte")
				b.ReportMetric(float64(s.Syncs-before.Syncs)/float64(b.N), "syncs/op")
				require.NoError(b, e.Close())
			})
		}
	}
}

func appendParallel(b *testing.B, e *storage.Engine, groups int, data []byte) {
	var wg sync.WaitGroup
	for id := range groups {
		g, err := e.Group(uint64(id))
		require.NoError(b, err)
		n := b.N / groups
		if id < b.N%groups {
			n++
		}
		wg.Go(func() {
			for i := uint64(1); i <= uint64(n); i++ {
				ent := &pb.Entry{Term: new(uint64(1)), Index: new(i), Data: data}
				if err := g.AppendWait(b.Context(), storage.Write{Entries: []*pb.Entry{ent}}); err != nil {
					b.Error(err)
					return
				}
				if i%1000 == 0 {
					_ = g.SetSnapshot(&pb.SnapshotMetadata{Index: new(i)}, nil) // an error shows in the next append
					_ = g.Compact(i - 100)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkRead reads pages of 1 KB entries that are not in memory.
func BenchmarkRead(b *testing.B) {
	for _, page := range []uint64{1, 64, 1000} {
		b.Run(fmt.Sprintf("entries=%d", page), func(b *testing.B) {
			e, err := storage.Open(b.TempDir(), storage.Options{Identity: testIdentity, CacheBytes: -1})
			require.NoError(b, err)
			g, err := e.Group(1)
			require.NoError(b, err)
			require.NoError(b, g.AppendWait(b.Context(), storage.Write{Entries: storagetest.Entries(1, 1, 10000, 1<<10)}))
			b.SetBytes(int64(page << 10))
			b.ReportAllocs()
			lo := uint64(1)
			for b.Loop() {
				if ents, err := g.Entries(lo, lo+page, 1<<62); err != nil || uint64(len(ents)) != page {
					b.Fatal(len(ents), err)
				}
				if lo += page; lo+page > 10001 {
					lo = 1
				}
			}
			require.NoError(b, e.Close())
		})
	}
}

func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func fill(t testing.TB, e *storage.Engine, groups, entries, size int) {
	for i := range entries { // in turn, as busy groups do
		for id := range groups {
			g, err := e.Group(uint64(id))
			require.NoError(t, err)
			require.NoError(t, g.Append(storage.Write{
				Entries:   storagetest.Entries(1, uint64(i+1), 1, size),
				HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(i))},
				Lazy:      i < entries-1,
			}, nil))
		}
	}
	require.NoError(t, e.Sync(t.Context()))
}

// TestManyGroups: 10,000 groups are one log, and come back, mostly by indexes. It
// prints memory and restart time; BenchmarkOpen measures them.
func TestManyGroups(t *testing.T) {
	const groups = 10_000
	opts := storage.Options{Identity: testIdentity, FS: vfs.NewMem(), SegmentBytes: 1 << 20}
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	fill(t, e, groups, 3, 100)
	require.NoError(t, e.Close())
	before, start := heapBytes(), time.Now()
	e, err = storage.Open("data", opts)
	took := time.Since(start)
	require.NoError(t, err)
	perGroup, r := (heapBytes()-before)/groups, e.Recovery()
	t.Logf("opened in %v, %.0f heap bytes a group, %+v", took, perGroup, r)
	require.Len(t, e.Groups(), groups)
	require.Less(t, perGroup, 3000.0)
	require.Less(t, r.ReadBytes, r.Bytes/2)
	for _, id := range []uint64{0, 1, groups - 1} {
		g, err := e.Group(id)
		require.NoError(t, err)
		ents, err := g.Entries(1, 4, 1<<20)
		require.NoError(t, err)
		require.Len(t, ents, 3)
	}
	require.NoError(t, e.Close())
}
