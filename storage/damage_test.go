// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// smallLog writes a log of two segments: the first sealed, the second as a
// process leaves it that is killed when idle, or closes in good order.
func smallLog(t *testing.T, closed bool) (*vfs.MemFS, []op) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	opts := crashOptions(fs)
	opts.SegmentBytes = storage.MinSegmentBytes
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	hs := func(commit uint64) *pb.HardState { return &pb.HardState{Term: new(uint64(2)), Commit: new(commit)} }
	ops := []op{
		{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 1, 4, 700), HardState: hs(2)}},
		{group: 2, write: storage.Write{Entries: storagetest.Entries(2, 1, 3, 400)}},
		{group: 1, write: storage.Write{Entries: storagetest.Entries(2, 4, 2, 30)}}, // replaces 4
		{group: 2, snapshot: &pb.SnapshotMetadata{Index: new(uint64(2)), ConfState: &pb.ConfState{Voters: []uint64{1}}}},
		{group: 2, compact: 1},
		{group: 1, write: storage.Write{HardState: hs(4)}},
		{group: 3, write: storage.Write{Snapshot: &pb.Snapshot{Data: []byte("small"), Metadata: &pb.SnapshotMetadata{Index: new(uint64(9)), Term: new(uint64(3))}}}},
		{group: 3, write: storage.Write{Entries: storagetest.Entries(3, 10, 2, 100)}},
		{group: 2, write: storage.Write{Entries: storagetest.Entries(3, 4, 1, 1000), HardState: hs(1)}},
	}
	for _, o := range ops {
		require.NoError(t, o.toEngine(e, nil))
		require.NoError(t, e.Sync(t.Context()))
	}
	require.Equal(t, 2, e.Stats().Segments)
	if !closed {
		return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}), ops
	}
	require.NoError(t, e.Close())
	return fs, ops
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("data", name))
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("data", name), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(append([]byte(nil), b...)) // Write may change its argument
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
}

func copyFS(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

func segmentFiles(t *testing.T, fs vfs.FS) (names []string) {
	t.Helper()
	all, err := fs.List("data")
	require.NoError(t, err)
	for _, n := range all {
		if strings.HasSuffix(n, ".seg") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// open and reads everything; the log must be as ops say, or the error say what
// is damaged.
func openDamaged(t *testing.T, fs vfs.FS, ops []op) error {
	t.Helper()
	e, err := storage.Open("data", crashOptions(fs))
	if err != nil {
		return err
	}
	_, err = prefix(e, ops, len(ops))
	require.NoError(t, e.Close())
	return err
}

// TestFlipEveryByte damages every byte of every file in turn: the log is
// exactly what was written, or an error says that it is not.
func TestFlipEveryByte(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprint("closed=", closed), func(t *testing.T) {
			fs, ops := smallLog(t, closed)
			require.NoError(t, openDamaged(t, copyFS(fs), ops))
			exact, damaged, named := 0, 0, 0
			for _, name := range append(segmentFiles(t, fs), "IDENTITY") {
				whole := readFile(t, fs, name)
				// Behind the frames there are zeros up to where the file was allocated.
				for i := range min(len(whole), len(bytes.TrimRight(whole, "\x00"))+40) {
					broken := append([]byte(nil), whole...)
					broken[i] ^= 1 << (i % 8)
					c := copyFS(fs)
					writeFile(t, c, name, broken)
					err := openDamaged(t, c, ops)
					var d *storage.DamageError
					switch {
					case err == nil:
						exact++
					case errors.As(err, &d):
						damaged++
						if d.Group > 0 && d.Index > 0 {
							named++
						}
					default:
						require.True(t, errors.Is(err, storage.ErrVersion) || errors.Is(err, storage.ErrIdentity), "byte %d of %s: %v", i, name, err)
					}
				}
			}
			t.Logf("%d exact, %d damaged, %d of these name group and index", exact, damaged, named)
			// Most of the first segment's frames are not looked at, as there is its
			// index; where that is damaged, they are.
			require.Greater(t, damaged, 4000)
			require.Greater(t, exact, 1000)
			require.Greater(t, named, damaged*3/4)
		})
	}
}

// TestDamageNamesEntry damages one entry in each segment: the error names it.
func TestDamageNamesEntry(t *testing.T) {
	fs, _ := smallLog(t, true)
	for _, c := range []struct {
		group, index uint64
		entry        *pb.Entry
	}{
		{1, 2, storagetest.Entry(1, 2, 700)},
		{2, 3, storagetest.Entry(2, 3, 400)},
		{2, 4, storagetest.Entry(3, 4, 1000)},
	} {
		found := false
		for _, name := range segmentFiles(t, fs) {
			b := readFile(t, fs, name)
			at := strings.Index(string(b), string(c.entry.Data))
			if at < 0 {
				continue
			}
			found = true
			b[at+5]++
			damaged := copyFS(fs)
			writeFile(t, damaged, name, b)
			e, err := storage.Open("data", crashOptions(damaged))
			if err == nil {
				g, gerr := e.Group(c.group)
				require.NoError(t, gerr)
				_, err = g.Entries(c.index, c.index+1, 1)
				require.NoError(t, e.Close())
			}
			var d *storage.DamageError
			require.ErrorAs(t, err, &d)
			require.Equal(t, c.group, d.Group)
			require.Equal(t, c.index, d.Index)
			require.ErrorContains(t, err, fmt.Sprintf("group %d, index %d", c.group, c.index))
			require.ErrorContains(t, err, "("+name+")")
			require.ErrorIs(t, err, storage.ErrDamaged)
		}
		require.True(t, found)
	}
}

// TestTornAtEveryByte leaves every length of the last batch's frames, followed
// by nothing, zeros or bytes of something else. Nobody was told that the batch
// is durable: the log opens with what went before, or all of it.
func TestTornAtEveryByte(t *testing.T) {
	mem := vfs.NewCrashableMem()
	e, err := storage.Open("data", crashOptions(mem))
	require.NoError(t, err)
	ops := []op{
		{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 1, 2, 50)}},
		{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 3, 1, 200), Lazy: true}},
		{group: 2, write: storage.Write{Entries: storagetest.Entries(4, 1, 2, 30), HardState: &pb.HardState{Term: new(uint64(4)), Commit: new(uint64(2))}, Lazy: true}},
	}
	require.NoError(t, ops[0].toEngine(e, nil))
	require.NoError(t, e.Sync(t.Context()))
	name := segmentFiles(t, mem)[0]
	synced := int(e.Stats().SegmentBytes)
	for _, o := range ops[1:] {
		require.NoError(t, o.toEngine(e, nil))
	}
	_, err = e.Step()
	require.NoError(t, err)
	whole := readFile(t, mem, name)[:e.Stats().SegmentBytes]
	noise := storagetest.Entry(7, 7, 300).Data
	seen, cuts := map[int]bool{}, 0
	for n := synced; n <= len(whole); n++ {
		for _, rest := range [][]byte{nil, make([]byte, 300), noise, whole[min(n+100, len(whole)):]} {
			c := copyFS(mem)
			writeFile(t, c, name, append(append([]byte(nil), whole[:n]...), rest...))
			e, err := storage.Open("data", crashOptions(c))
			require.NoError(t, err, "%d bytes", n)
			k, err := prefix(e, ops, 1)
			require.NoError(t, err, "%d bytes", n)
			seen[k] = true
			if r := e.Recovery(); r.CutBytes > 0 {
				require.GreaterOrEqual(t, r.CutOffset, int64(synced))
				cuts++
			}
			// It goes on from there.
			g, err := e.Group(1)
			require.NoError(t, err)
			last, err := g.LastIndex()
			require.NoError(t, err)
			require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(9, last+1, 1, 10)}))
			require.NoError(t, e.Close())
			e, err = storage.Open("data", crashOptions(c))
			require.NoError(t, err)
			require.Zero(t, e.Recovery().CutBytes)
			g, err = e.Group(1)
			require.NoError(t, err)
			again, err := g.LastIndex()
			require.NoError(t, err)
			require.Equal(t, last+1, again)
			require.NoError(t, e.Close())
		}
	}
	require.Equal(t, map[int]bool{1: true, 2: true, 3: true}, seen)
	require.Greater(t, cuts, len(whole)-synced)
}

// TestMissingSegment takes each file but the last away.
func TestMissingSegment(t *testing.T) {
	mem := vfs.NewCrashableMem()
	opts := crashOptions(mem)
	opts.SegmentBytes = storage.MinSegmentBytes
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(5)
	require.NoError(t, err)
	// Only group 6 has anything in the first: nothing else would miss it.
	idle, err := e.Group(6)
	require.NoError(t, err)
	require.NoError(t, idle.AppendWait(t.Context(), storage.Write{Snapshot: &pb.Snapshot{Data: make([]byte, 5000), Metadata: &pb.SnapshotMetadata{Index: new(uint64(3)), Term: new(uint64(1))}}}))
	for i := range uint64(3) {
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, 1+i, 1, 5000)}))
	}
	require.NoError(t, e.Close())
	names := segmentFiles(t, mem)
	require.Equal(t, "0000000000000001.seg", names[0])
	require.Len(t, names, 4)
	for _, n := range names[:3] {
		c := copyFS(mem)
		require.NoError(t, c.Remove(c.PathJoin("data", n)))
		_, err := storage.Open("data", crashOptions(c))
		require.ErrorIs(t, err, storage.ErrDamaged, n)
		require.ErrorContains(t, err, "missing")
	}
}

// TestPurgeMeetsDamage: an entry that must be written again cannot be read. The
// segment stays, the engine goes on and says so, and the entry's reader gets
// the damage.
func TestPurgeMeetsDamage(t *testing.T) {
	mem := vfs.NewMem()
	opts := crashOptions(mem)
	opts.CacheBytes = -1
	var lines []string
	opts.Logf = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	lagging, err := e.Group(2)
	require.NoError(t, err)
	old := storagetest.Entries(1, 1, 3, 700)
	require.NoError(t, lagging.AppendWait(t.Context(), storage.Write{Entries: old}))

	name := segmentFiles(t, mem)[0]
	at := strings.Index(string(readFile(t, mem, name)), string(old[1].Data))
	f, err := mem.OpenReadWrite(mem.PathJoin("data", name), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("damage"), int64(at))
	require.NoError(t, errors.Join(err, f.Close()))

	busy, err := e.Group(1)
	require.NoError(t, err)
	write := func(from, to uint64) {
		for i := from; i < to; i++ {
			require.NoError(t, busy.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, 1+i, 1, 3000)}))
			if i > 1 {
				require.NoError(t, busy.SetSnapshot(&pb.SnapshotMetadata{Index: new(i)}, nil))
				require.NoError(t, busy.Compact(i))
			}
		}
	}
	write(0, 100)
	require.Zero(t, e.Stats().Purged)
	require.Contains(t, segmentFiles(t, mem), name)
	require.Contains(t, strings.Join(lines, "\n"), "purging rests")
	require.Contains(t, strings.Join(lines, "\n"), "group 2, index 2")
	_, err = lagging.Entries(1, 4, 1<<20)
	require.ErrorIs(t, err, storage.ErrDamaged)
	ents, err := lagging.Entries(3, 4, 1<<20)
	require.NoError(t, err)
	require.Len(t, ents, 1)

	// When the group needs the damaged entry no more, purging goes on.
	require.NoError(t, lagging.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(2))}, nil))
	require.NoError(t, lagging.Compact(2))
	write(100, 200)
	require.Positive(t, e.Stats().Purged)
	require.NotContains(t, segmentFiles(t, mem), name)
	ents, err = lagging.Entries(3, 4, 1<<20)
	require.NoError(t, err)
	require.Len(t, ents, 1)
	require.NoError(t, e.Close())
}
