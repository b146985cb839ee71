// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// tightFS is a file system that asks refuse before each operation that may need
// room. A refused write writes some of its bytes, as real ones do.
type tightFS struct {
	vfs.FS
	rng    *rand.Rand
	refuse func(what string) bool
}

func (fs *tightFS) full(op, name string) error {
	if fs.refuse(op + " " + name) {
		return fmt.Errorf("%s %s: %w", op, name, syscall.ENOSPC)
	}
	return nil
}

func (fs *tightFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if _, err := fs.Stat(name); err != nil {
		if err := fs.full("create", name); err != nil {
			return nil, err
		}
	}
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	if err != nil {
		return nil, err
	}
	return &tightFile{File: f, fs: fs, name: name}, nil
}

func (fs *tightFS) Rename(from, to string) error {
	if err := fs.full("rename", from); err != nil {
		return err
	}
	return fs.FS.Rename(from, to)
}

func (fs *tightFS) Remove(name string) error {
	if err := fs.full("remove", name); err != nil {
		return err
	}
	return fs.FS.Remove(name)
}

type tightFile struct {
	vfs.File
	fs   *tightFS
	name string
}

func (f *tightFile) Preallocate(off, n int64) error { return f.fs.full("preallocate", f.name) }

func (f *tightFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.full("write", f.name); err != nil {
		n, _ := f.File.WriteAt(b[:f.fs.rng.IntN(len(b))], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

// runFull makes the writes of a workload, with as many steps as it takes, and
// asks that all are acknowledged, in their order, and never without room.
func runFull(t *testing.T, e *storage.Engine, ops []op, acked *int, queued *int) (stalls int) {
	t.Helper()
	last := -1
	step := func() bool {
		wrote, err := e.Step()
		require.NoError(t, err)
		full := e.Stalled()
		require.Equal(t, full != nil, e.Stats().Full)
		if full != nil {
			stalls++
			require.ErrorIs(t, full, storage.ErrFull)
			require.ErrorIs(t, full, syscall.ENOSPC)
			require.ErrorContains(t, full, "directory data")
			require.NoError(t, e.Err())
		}
		return wrote || full != nil
	}
	for i, o := range ops {
		*queued = i + 1
		require.NoError(t, o.toEngine(e, func(err error) {
			require.NoError(t, err)
			require.Greater(t, i, last, "acknowledged out of order")
			last = i
			if !o.write.Lazy {
				*acked = i + 1
			}
		}), "%d: %v", i, o)
		if i%3 == 2 {
			step()
		}
	}
	for steps := 0; step(); steps++ {
		require.Less(t, steps, 10_000)
	}
	for e.Sync(t.Context()) != nil {
		stalls++
	}
	*acked = len(ops)
	return stalls
}

// TestFullEverywhere refuses room at each operation in turn, for one to three
// tries. Nothing is lost, nothing fails, and what a crash leaves meanwhile holds
// all that was acknowledged.
func TestFullEverywhere(t *testing.T) {
	ops := workload(rand.New(rand.NewPCG(2, 2)), 50)
	kinds := map[string]int{}
	for n := 0; ; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		mem := vfs.NewCrashableMem()
		c := &crasher{t: t, rng: rng, mem: mem, ops: ops}
		count, hits, open := 0, 1+n%3, false
		fs := &tightFS{FS: mem, rng: rng, refuse: func(what string) bool {
			if count++; !open || count <= n || hits == 0 {
				return false
			}
			hits--
			op, _, _ := strings.Cut(what, " ")
			kinds[op]++
			for _, percent := range []int{0, 50, 100} {
				c.reopen(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), fmt.Sprintf("full at %d, %s", n, what))
			}
			return true
		}}
		opts, stalls := crashOptions(fs), 0
		opts.Logf = func(format string, _ ...any) {
			if strings.Contains(format, "room again") {
				stalls++
			}
		}
		e, err := storage.Open("data", opts)
		require.NoError(t, err)
		open, count = true, 0
		runFull(t, e, ops, &c.acked, &c.queued)
		if hits == 1+n%3 {
			require.NoError(t, e.Close())
			break // there was no such operation
		}
		require.Positive(t, stalls, "refusal %d", n)
		require.NoError(t, e.Stalled(), "refusal %d", n)
		_, err = prefix(e, ops, len(ops))
		require.NoError(t, err, "refusal %d", n)
		require.NoError(t, e.Close())
		e, err = storage.Open("data", crashOptions(mem))
		require.NoError(t, err, "refusal %d", n)
		_, err = prefix(e, ops, len(ops))
		require.NoError(t, err, "refusal %d", n)
		require.NoError(t, e.Close())
	}
	t.Logf("refusals: %v", kinds)
	for _, op := range []string{"create", "rename", "remove", "preallocate", "write"} {
		require.Positive(t, kinds[op], op)
	}
}

// TestCrashWhileFull crashes at every operation of a workload for which there is
// room only most of the time.
func TestCrashWhileFull(t *testing.T) {
	var points, torn, stalls int
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := &crasher{t: t, rng: rng, mem: vfs.NewCrashableMem(), ops: workload(rng, 40)}
		armed := false
		fs := &tightFS{FS: c.wrap(), rng: rng, refuse: func(string) bool { return armed && rng.IntN(4) == 0 }}
		e, err := storage.Open("data", crashOptions(fs))
		require.NoError(t, err)
		armed = true
		stalls += runFull(t, e, c.ops, &c.acked, &c.queued)
		armed = false
		require.NoError(t, e.Close())
		points, torn = points+c.points, torn+c.torn
	}
	t.Logf("%d crash points, %d torn tails, %d stalls", points, torn, stalls)
	require.Positive(t, torn)
	require.Greater(t, stalls, 10)
}

// disk is the room of a file system, in bytes of segment files.
type disk struct {
	mu    sync.Mutex
	full  bool
	freed int // files removed, each of which makes room for another
	room  int
}

func (d *disk) set(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// refuse has no room for new files and for longer ones; the engine writes only
// to what it allocated.
func (d *disk) refuse(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	op, _, _ := strings.Cut(what, " ")
	switch {
	case op == "remove":
		d.freed++
	case op == "create" && d.full && d.freed > 0:
		d.freed--
		d.room = 1 // for the blocks of this file
	case op == "preallocate" && d.full && d.room > 0:
		d.room--
	case op == "create" || op == "preallocate":
		return d.full
	}
	return false
}

func tightDisk() (*disk, vfs.FS) {
	d := &disk{}
	return d, &tightFS{FS: vfs.NewMem(), rng: rand.New(rand.NewPCG(1, 1)), refuse: d.refuse}
}

// TestFullDisk: when the disk fills up, the engine says so while it still has
// room for what is under way; then writes wait, bounded, and go on in their order
// by themselves when there is room.
func TestFullDisk(t *testing.T) { synctest.Test(t, fullDisk) }

func fullDisk(t *testing.T) {
	d, fs := tightDisk()
	var lines []string
	e, err := storage.Open("data", storage.Options{Identity: testIdentity, FS: fs, SegmentBytes: 64 << 10, QueueBytes: 20_000,
		Logf: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }})
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	var mu sync.Mutex
	var order []uint64
	last := uint64(0)
	write := func() error {
		err := g.Append(storage.Write{Entries: storagetest.Entries(1, last+1, 1, 3000)}, func(err error) {
			require.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, uint64(len(order)+1))
		})
		if err == nil {
			last++
		}
		synctest.Wait()
		return err
	}
	for e.Stats().Segments < 2 {
		require.NoError(t, write())
		require.NoError(t, e.Sync(t.Context()))
	}
	require.NoError(t, g.Stalled())
	d.set(true)
	warned := uint64(0) // writes acknowledged after the engine said that it is full
	for err = write(); err == nil; err = write() {
		mu.Lock()
		if g.Stalled() != nil && uint64(len(order)) == last {
			warned++
		}
		mu.Unlock()
	}
	require.ErrorIs(t, err, storage.ErrBusy)
	require.ErrorIs(t, err, storage.ErrFull)
	t.Logf("%d writes taken, %d acknowledged", last, len(order))
	require.Less(t, len(order), int(last))
	require.LessOrEqual(t, e.Stats().QueuedBytes, int64(20_000+3200))
	stalled := g.Stalled()
	require.ErrorIs(t, stalled, storage.ErrFull)
	require.ErrorContains(t, stalled, "no space left on device")
	require.NoError(t, e.Err())

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	require.ErrorIs(t, e.Sync(ctx), storage.ErrBusy) // at once, as nobody makes room
	cancel()
	acked := len(order)
	time.Sleep(time.Minute)
	synctest.Wait()
	require.Len(t, order, acked, "acknowledged without room")

	d.set(false)
	require.Eventually(t, func() bool { return g.Stalled() == nil }, 2*time.Second, 10*time.Millisecond)
	require.NoError(t, write())
	require.NoError(t, e.Sync(t.Context()))
	require.Len(t, order, int(last))
	ents, err := g.Entries(1, last+1, 1<<30)
	require.NoError(t, err)
	require.Len(t, ents, int(last))
	said := strings.Join(lines, "\n")
	require.Equal(t, 1, strings.Count(said, "the disk is full"), said)
	require.Equal(t, 1, strings.Count(said, "there is room again"), said)
	require.NoError(t, e.Close())
	require.Positive(t, warned, "no room was left when the engine said that it is full")
}

// TestFullDiskCompacted: what hosts compact makes room on a disk that stays full.
func TestFullDiskCompacted(t *testing.T) {
	d, fs := tightDisk()
	opts := storage.Options{Identity: testIdentity, FS: fs, Manual: true, SegmentBytes: 64 << 10, CacheBytes: -1, Spares: -1}
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	idle, err := e.Group(2)
	require.NoError(t, err)
	require.NoError(t, idle.Append(storage.Write{Entries: storagetest.Entries(1, 1, 3, 100), HardState: &pb.HardState{Term: new(uint64(7))}}, nil))
	g, err := e.Group(1)
	require.NoError(t, err)
	last := uint64(0)
	write := func() {
		last++
		require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(1, last, 1, 3000)}, nil))
		for more := true; more; {
			more, err = e.Step()
			require.NoError(t, err)
		}
	}
	for e.Stats().Segments < 4 {
		write()
	}
	d.set(true)
	for e.Stalled() == nil {
		write()
	}
	before := e.Stats()
	require.Zero(t, before.Purged)
	require.Zero(t, before.QueuedBytes, "the engine said too late that it is full")
	require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(last)}, nil))
	require.NoError(t, g.Compact(last-1))
	for range 50 {
		_, err := e.Step()
		require.NoError(t, err)
	}
	require.NoError(t, e.Stalled())
	require.Positive(t, e.Stats().Purged)
	for range 40 {
		write() // more than a segment
		require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(last)}, nil))
		require.NoError(t, g.Compact(last-1))
	}
	require.NoError(t, e.Close())
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	idle, err = e.Group(2)
	require.NoError(t, err)
	ents, err := idle.Entries(1, 4, 1<<20)
	require.NoError(t, err)
	require.Len(t, ents, 3)
	require.NoError(t, e.Close())
}

// TestCloseWhileFull: what waited for room ends with an error, and what was
// acknowledged is there. Without room for its first segment, Open says so.
func TestCloseWhileFull(t *testing.T) {
	d, fs := tightDisk()
	opts := storage.Options{Identity: testIdentity, FS: fs, SegmentBytes: storage.MinSegmentBytes, Manual: true}
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, 1, 1, 1000)}))
	d.set(true)
	var ended []error
	for i := range uint64(3) {
		require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(1, 2+i, 1, 20_000)}, func(err error) { ended = append(ended, err) }))
	}
	require.ErrorIs(t, g.AppendWait(t.Context(), storage.Write{HardState: &pb.HardState{Term: new(uint64(1))}}), storage.ErrFull)
	require.Empty(t, ended)
	require.ErrorIs(t, e.Close(), storage.ErrFull)
	require.Len(t, ended, 3)
	for _, err := range ended {
		require.ErrorIs(t, err, storage.ErrClosed)
		require.ErrorIs(t, err, storage.ErrFull)
	}
	_, err = storage.Open("data", opts)
	require.ErrorIs(t, err, storage.ErrFull)
	d.set(false)
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	g, err = e.Group(1)
	require.NoError(t, err)
	last, err := g.LastIndex()
	require.NoError(t, err)
	require.Equal(t, uint64(1), last)
	require.NoError(t, e.Close())
}

// TestFullBeforeTheFirstStart: the disk is full when a directory is made.
func TestFullBeforeTheFirstStart(t *testing.T) {
	full := true
	opts := crashOptions(&tightFS{FS: vfs.NewMem(), rng: rand.New(rand.NewPCG(1, 1)), refuse: func(string) bool { return full }})
	_, err := storage.Open("data", opts)
	require.ErrorIs(t, err, storage.ErrFull)
	require.ErrorContains(t, err, "IDENTITY")
	full = false
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// TestFullSyncFails: a sync without room is a failed sync, as any other.
func TestFullSyncFails(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFileSyncData, errorfs.OpFileSync} {
		armed := false
		opts := crashOptions(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if armed && op.Kind == kind {
				return syscall.ENOSPC
			}
			return nil
		})))
		e, err := storage.Open("data", opts)
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		armed = true
		for i := uint64(1); err == nil && i < 20; i++ {
			err = g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, i, 1, 4000)})
		}
		require.ErrorIs(t, err, storage.ErrFailed)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, e.Stalled())
		require.ErrorIs(t, e.Close(), storage.ErrFailed)
	}
}
