// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

func indexOptions(fs vfs.FS) Options {
	return Options{Identity: Identity{Cluster: 1, Node: 1}, FS: fs, Manual: true, SegmentBytes: 8 << 10, CacheBytes: -1}
}

// fillIndexed writes a log of several segments, with entries that are replaced,
// snapshots, compactions, purged segments and entries moved out of these.
func fillIndexed(t testing.TB, e *Engine, rng *rand.Rand, writes int) {
	for range writes {
		g, err := e.Group(rng.Uint64N(5))
		require.NoError(t, err)
		first, _ := g.FirstIndex()
		last, _ := g.LastIndex()
		snap := g.snapshot.GetMetadata().GetIndex()
		term := g.hardState.GetTerm() + 1
		switch k := rng.IntN(10); {
		case k == 0 && g.ID() > 0 && snap < last: // group 0 lags, and is moved
			require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(last - rng.Uint64N(min(3, last-snap))), ConfState: &pb.ConfState{Voters: []uint64{term}}}, nil))
		case k <= 2 && first <= snap:
			require.NoError(t, g.Compact(snap))
		case k == 3 && rng.IntN(4) == 0:
			require.NoError(t, g.Append(Write{Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(last + 3), Term: new(term)}}, HardState: &pb.HardState{Term: new(term), Commit: new(last + 3)}}, nil))
		default:
			from := last + 1
			if low := max(first, snap+1); low < last && rng.IntN(4) == 0 {
				from = low + rng.Uint64N(last-low)
			}
			var ents []*pb.Entry
			for i := range 1 + rng.Uint64N(3) {
				ents = append(ents, &pb.Entry{Term: new(term), Index: new(from + i), Data: make([]byte, rng.IntN(900))})
			}
			require.NoError(t, g.Append(Write{Entries: ents, HardState: &pb.HardState{Term: new(term), Commit: new(g.hardState.GetCommit())}}, nil))
		}
		for more := true; more && rng.IntN(3) > 0; {
			more, err = e.Step()
			require.NoError(t, err)
		}
	}
	require.NoError(t, e.Sync(t.Context()))
}

// requireSameLog compares all that two engines know of all groups, with the
// places on disk.
func requireSameLog(t *testing.T, want, got *Engine) {
	t.Helper()
	require.Equal(t, want.Groups(), got.Groups())
	for id, w := range want.groups {
		g := got.groups[id]
		require.True(t, proto.Equal(w.hardState, g.hardState), "group %d", id)
		require.True(t, proto.Equal(w.snapshot, g.snapshot), "group %d", id)
		require.Equal(t, w.log.base, g.log.base, "group %d", id)
		require.Len(t, g.log.slots, len(w.log.slots), "group %d", id)
		for i, a := range w.log.slots {
			b := g.log.slots[i]
			require.Equal(t, fmt.Sprint(a.term, a.seg.number, a.off, a.size, a.crc), fmt.Sprint(b.term, b.seg.number, b.off, b.size, b.crc), "group %d, index %d", id, w.log.first()+uint64(i))
		}
		for i, p := range []place{w.places.hardState, w.places.snapshot, w.places.base} {
			q := []place{g.places.hardState, g.places.snapshot, g.places.base}[i]
			require.Equal(t, p.seg == nil, q.seg == nil)
			if p.seg != nil {
				require.Equal(t, [2]int64{int64(p.seg.number), p.bytes}, [2]int64{int64(q.seg.number), q.bytes}, "group %d, place %d", id, i)
			}
		}
	}
	for i, s := range want.segments {
		require.Equal(t, s.live.Load(), got.segments[i].live.Load(), "segment %d", s.number)
	}
}

func cloneFS(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// openBoth opens copies of a log with its indexes and without, and asks that both
// know the same. It returns what the first found.
func openBoth(t *testing.T, fs *vfs.MemFS) Recovery {
	t.Helper()
	all := indexOptions(cloneFS(fs))
	all.noIndex = true
	want, err := Open("d", all)
	require.NoError(t, err)
	got, err := Open("d", indexOptions(cloneFS(fs)))
	require.NoError(t, err)
	requireSameLog(t, want, got)
	require.Zero(t, want.recovery.Indexed)
	require.Equal(t, want.recovery.Frames, got.recovery.Frames)
	require.Equal(t, want.recovery.Bytes, got.recovery.Bytes)
	for i, s := range want.segments {
		require.Equal(t, s.size.Load(), got.segments[i].size.Load(), "segment %d", s.number)
	}
	require.NoError(t, want.Close())
	require.NoError(t, got.Close())
	return got.recovery
}

// TestIndexSaysTheSame: a log read by its indexes is the log that its frames
// say, after crashes and orderly ends, over purged and moved segments.
func TestIndexSaysTheSame(t *testing.T) {
	indexed, segments := 0, 0
	var purged, moved uint64
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 21))
		fs := vfs.NewCrashableMem()
		for range 4 {
			e, err := Open("d", indexOptions(fs))
			require.NoError(t, err)
			fillIndexed(t, e, rng, 80)
			purged, moved = purged+e.Stats().Purged, moved+e.Stats().MovedEntries
			r := openBoth(t, fs) // as a crash leaves it
			indexed, segments = indexed+r.Indexed, segments+r.Segments
			if rng.IntN(2) == 0 {
				fs = cloneFS(fs)
				continue
			}
			require.NoError(t, e.Close())
			require.Equal(t, openBoth(t, fs).Segments-1, openBoth(t, fs).Indexed)
		}
	}
	t.Logf("%d of %d segments read by their index; %d purged, %d entries moved", indexed, segments, purged, moved)
	require.Greater(t, indexed, segments/2)
	require.Positive(t, purged)
	require.Positive(t, moved)
}

// TestIndexSavesReading: of a sealed segment, only index and first frame are read.
func TestIndexSavesReading(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := indexOptions(fs)
	opts.SegmentBytes = 1 << 20
	e, err := Open("d", opts)
	require.NoError(t, err)
	for i := range uint64(4000) {
		g, err := e.Group(i % 50)
		require.NoError(t, err)
		require.NoError(t, g.Append(Write{Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(1 + i/50), Data: make([]byte, 1<<10)}}}, nil))
	}
	require.NoError(t, e.Close())
	read := map[bool]int64{}
	for _, noIndex := range []bool{true, false} {
		opts := opts
		opts.FS, opts.noIndex = cloneFS(fs), noIndex
		e, err := Open("d", opts)
		require.NoError(t, err)
		read[noIndex] = e.Recovery().ReadBytes
		require.Equal(t, 4000, e.Recovery().Entries)
		require.NoError(t, e.Close())
	}
	t.Logf("read %d bytes with indexes, %d without", read[false], read[true])
	require.Less(t, read[false], read[true]/3) // the last segment is read in any case
}

// TestIndexDamaged flips each byte of an index, and of the seal: the log stays
// what it was, as the frames are read.
func TestIndexDamaged(t *testing.T) {
	fs := vfs.NewCrashableMem()
	e, err := Open("d", indexOptions(fs))
	require.NoError(t, err)
	fillIndexed(t, e, rand.New(rand.NewPCG(4, 4)), 40)
	require.Greater(t, len(e.segments), 2)
	require.NoError(t, e.Close())
	want, err := Open("d", indexOptions(cloneFS(fs)))
	require.NoError(t, err)
	require.Equal(t, len(want.segments)-2, want.recovery.Indexed)

	r := recovery{e: want}
	f, err := r.findIndex(want.segments[0], want.segments[1])
	require.NoError(t, err)
	_, begin, err := r.readBegin(want.segments[1])
	require.NoError(t, err)
	for at := begin.index; at < f.end; at++ {
		damaged := cloneFS(fs)
		flip(t, damaged, want.segments[0].number, at)
		got, err := Open("d", indexOptions(damaged))
		require.NoError(t, err, "byte %d", at)
		requireSameLog(t, want, got)
		require.NoError(t, got.Close())
	}
	require.NoError(t, want.Close())
}

func flip(t *testing.T, fs vfs.FS, segment uint64, at int64) {
	f, err := fs.OpenReadWrite(fs.PathJoin("d", segmentName(segment)), diskCategory)
	require.NoError(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 1 << (at % 8)
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// BenchmarkOpen opens logs of many groups and many segments, by their indexes and
// by all their frames.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct{ groups, entries, size, segment int }{
		{1, 100_000, 100, 1 << 20},
		{10_000, 10, 100, 1 << 20},
		{10_000, 20, 1 << 10, 4 << 20},
		{10, 300, 64 << 10, 4 << 20},
	} {
		opts := Options{Identity: Identity{Cluster: 1, Node: 1}, SegmentBytes: int64(c.segment), NoSync: true}
		dir := b.TempDir()
		e, err := Open(dir, opts)
		require.NoError(b, err)
		data := make([]byte, c.size)
		for i := range uint64(c.entries) { // in turn, as busy groups do
			for id := range uint64(c.groups) {
				g, err := e.Group(id)
				require.NoError(b, err)
				require.NoError(b, g.Append(Write{
					Entries:   []*pb.Entry{{Term: new(uint64(1)), Index: new(i + 1), Data: data}},
					HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(i)},
				}, nil))
			}
		}
		require.NoError(b, e.Close())
		for _, index := range []bool{true, false} {
			b.Run(fmt.Sprintf("groups=%d/entries=%d/size=%d/index=%v", c.groups, c.entries, c.size, index), func(b *testing.B) {
				opts.noIndex = !index
				benchmarkOpen(b, dir, opts)
			})
		}
	}
}

func benchmarkOpen(b *testing.B, dir string, opts Options) {
	var heap float64
	var found Recovery
	for b.Loop() {
		b.StopTimer()
		before := heapBytes()
		b.StartTimer()
		e, err := Open(dir, opts)
		b.StopTimer()
		require.NoError(b, err)
		heap, found = heapBytes()-before, e.Recovery()
		require.NoError(b, e.Close())
		b.StartTimer()
	}
	b.SetBytes(found.Bytes)
	b.ReportMetric(float64(found.Segments), "segments")
	b.ReportMetric(heap/float64(found.Groups), "heapbytes/group")
	b.ReportMetric(float64(found.ReadBytes)/float64(found.Bytes), "readbytes/byte")
}

func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestVersion1 reads segments that say nothing of indexes.
func TestVersion1(t *testing.T) {
	opts := indexOptions(vfs.NewMem())
	d, err := openDirectory("d", opts)
	require.NoError(t, err)
	meta, err := (&record{hardState: &pb.HardState{Term: new(uint64(3))}}).appendMeta(nil)
	require.NoError(t, err)
	seq := uint64(0)
	for number := uint64(1); number <= 2; number++ {
		begin := beginMeta{id: opts.Identity, first: 1}.append(nil)[:beginMetaLen1]
		binary.LittleEndian.PutUint32(begin, 1)
		var b []byte
		for _, h := range []frameHeader{{kind: frameBegin}, {kind: frameWrite, group: number}, {kind: frameSeal}} {
			seq++
			h.segment, h.seq = number, seq
			b = appendFrameHead(b, d.sum, h, map[frameKind][]byte{frameBegin: begin, frameWrite: meta}[h.kind])
			b = append(b, make([]byte, -len(b)&(frameAlign-1))...)
		}
		f, _, _, err := d.create(number)
		require.NoError(t, err)
		_, err = f.WriteAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.NoError(t, d.close())
	for range 2 { // as it was, and with segments of this version behind
		e, err := Open("d", opts)
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 2}, e.Groups())
		require.Zero(t, e.Recovery().CutBytes)
		require.NoError(t, e.Close())
	}
}

// FuzzDecodeIndex: any bytes are an error, or records inside the segment.
func FuzzDecodeIndex(f *testing.F) {
	x := index{needed: 3}
	x.add(4, 100, sampleRecord())
	moved := sampleRecord()
	moved.moved = true
	x.add(5, 300, moved)
	x.add(4, 400, &record{base: &position{term: 1, index: 2}})
	f.Add(x.meta(), int64(1000))
	f.Add(x.meta(), int64(10))
	f.Add(x.meta(), int64(-52))
	f.Add([]byte("01234567\x01\x01\x02\x01\xff\xff\xff\xff\x0f"), int64(1000))
	f.Fuzz(func(t *testing.T, b []byte, end int64) {
		_, err := decodeIndex(b, end, func(_ uint64, body uint32, rec *record) {
			require.LessOrEqual(t, int64(body)+int64(rec.bodyLen()), end)
			require.LessOrEqual(t, len(rec.rows)*6, len(b))
		})
		if err != nil {
			require.ErrorIs(t, err, errBadRecord)
		}
	})
}
