// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

var (
	lifeSeeds = flag.Int("lifeseeds", 60, "directories of TestManyLives")
	lifeSeed  = flag.Int("lifeseed", 0, "the first of these")
)

var errKilled = errors.New("the process was killed")

// lives is one directory, and the processes that have it one after the other. Each is killed at some
// operation on the file system, of its start too; or power fails then; or it ends in good order. After a
// kill the next one finds what the caches of the operating system have, of which a later power failure
// leaves what it likes.
type lives struct {
	t    *testing.T
	rng  *rand.Rand
	mem  *vfs.MemFS
	left int // operations until the process is killed
	full int // of how many that need room one finds none; 0: none

	m     models
	ops   []op
	acked int // writes up to the last that was reported durable
	terms map[uint64]uint64

	starts, purged, recycled, stalls int
}

// fs is the file system as a process sees it.
func (l *lives) fs() vfs.FS {
	mortal := errorfs.Wrap(l.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFilePreallocate && op.Kind != errorfs.OpFileClose && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			l.left--
		}
		if l.left < 0 {
			return errKilled
		}
		return nil
	}))
	return unlocked{&tightFS{FS: mortal, rng: l.rng, refuse: func(string) bool { return l.full > 0 && l.left >= 0 && l.rng.IntN(l.full) == 0 }}}
}

func (l *lives) options() storage.Options {
	opts := crashOptions(l.fs())
	opts.SegmentBytes = []int64{storage.MinSegmentBytes, 16 << 10, 32 << 10}[l.rng.IntN(3)]
	opts.Spares = l.rng.IntN(4) - 1
	opts.BatchBytes = []int64{0, 1, 20_000}[l.rng.IntN(3)]
	return opts
}

// live is one process. It returns an error if the process was killed.
func (l *lives) live() error {
	l.left, l.full = l.rng.IntN([]int{10, 40, 400}[l.rng.IntN(3)]), []int{0, 0, 4, 12}[l.rng.IntN(4)]
	e, err := storage.Open("data", l.options())
	if l.left >= 0 && errors.Is(err, storage.ErrFull) {
		return err
	}
	if l.left < 0 {
		return errKilled
	}
	require.NoError(l.t, err)
	l.starts++
	k, err := prefix(e, l.ops, l.acked)
	if l.left < 0 {
		return errKilled // a read of the test
	}
	require.NoError(l.t, err)
	l.ops, l.acked, l.m = l.ops[:k:k], k, models{}
	for _, o := range l.ops {
		require.NoError(l.t, l.m.apply(o))
	}
	if err := l.write(e); err != nil || l.left < 0 {
		require.Negative(l.t, l.left, "%v", err)
		return errKilled
	}
	l.purged, l.recycled = l.purged+int(e.Stats().Purged), l.recycled+int(e.Stats().Recycled)
	if l.rng.IntN(2) == 0 {
		return errKilled // between two operations
	}
	if err := e.Close(); err != nil && l.left >= 0 && !errors.Is(err, storage.ErrFull) {
		require.NoError(l.t, err)
	}
	return nil
}

// write makes some writes.
func (l *lives) write(e *storage.Engine) error {
	for range l.rng.IntN(40) {
		before := slices.Clone(l.ops)
		// Some end about where the least segment does, or are about as large as those that are not gathered.
		o := l.m.draw(l.rng, l.terms, []int{0, 10, 900, 5000, 12000, 3870 + l.rng.IntN(50), 16<<10 - 40 + l.rng.IntN(60), 40_000})
		l.ops = append(before, o)
		n := len(l.ops)
		err := o.toEngine(e, func(err error) {
			if err == nil && !o.write.Lazy {
				l.acked = max(l.acked, n)
			}
		})
		if err != nil {
			return err
		}
		for range l.rng.IntN(4) {
			if _, err := e.Step(); err != nil {
				return err
			}
			if e.Stalled() != nil {
				l.stalls++
			}
		}
	}
	return nil
}

// TestManyLives has a directory live through many processes, full disks and power failures, with other
// options each time. Each process finds a prefix of the writes with all that was reported durable, goes on
// from there, and finds nothing that it cannot start with.
func TestManyLives(t *testing.T) {
	starts, purged, recycled, stalls := 0, 0, 0, 0
	seeds := *lifeSeeds
	if testing.Short() {
		seeds /= 5
	}
	for seed := *lifeSeed; seed < *lifeSeed+seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 21))
			l := &lives{t: t, rng: rng, mem: vfs.NewCrashableMem(), m: models{}, terms: map[uint64]uint64{}}
			for range 30 {
				if l.live() != nil && rng.IntN(2) == 0 {
					// MemFS draws in the order of a map: the rest of the story does not hang on how often.
					l.mem = l.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 100}[rng.IntN(4)], RNG: rand.New(rand.NewPCG(rng.Uint64(), 1))})
				}
			}
			starts, purged, recycled, stalls = starts+l.starts, purged+l.purged, recycled+l.recycled, stalls+l.stalls
		})
	}
	t.Logf("%d starts, %d segments purged, %d recycled, %d stalls", starts, purged, recycled, stalls)
	require.Positive(t, purged)
	require.Positive(t, recycled)
	require.Positive(t, stalls)
}

// twoNames is a file system whose power fails in the rename of a segment, which leaves both names. There is another
// spare already, with which the next start begins its segment.
type twoNames struct {
	vfs.FS
	t      *testing.T
	failed bool
}

func (fs *twoNames) Rename(from, to string) error {
	names, err := fs.List("data")
	require.NoError(fs.t, err)
	spare := func(name string) bool { return strings.HasSuffix(name, ".spare") }
	if fs.failed || !spare(to) || !slices.ContainsFunc(names, spare) {
		return fs.FS.Rename(from, to)
	}
	fs.failed = true
	writeFile(fs.t, fs.FS, path.Base(to), readFile(fs.t, fs.FS, path.Base(from)))
	return errKilled
}

// TestSpareBesideItsSegment: a power failure in the middle of a purge has left a spare file, and the segment of the
// same number. The next engine purges the segment once more, and has one spare of the number.
func TestSpareBesideItsSegment(t *testing.T) {
	fs := &twoNames{FS: vfs.NewMem(), t: t}
	opts := crashOptions(unlocked{fs})
	opts.SegmentBytes, opts.Spares = storage.MinSegmentBytes, 3
	next := uint64(1)
	write := func(e *storage.Engine) (err error) {
		g, err := e.Group(1)
		require.NoError(t, err)
		for n := 0; n < 80 && err == nil; n++ {
			err = g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, next, 1, 1000)})
			if err == nil && n%20 == 19 { // several segments go at once
				err = errors.Join(g.SetSnapshot(&pb.SnapshotMetadata{Index: new(next)}, nil), g.Compact(next), e.Sync(t.Context()))
			}
			next++
		}
		return err
	}
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	require.ErrorIs(t, write(e), errKilled)
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	last, err := g.LastIndex()
	require.NoError(t, err)
	next = last + 1
	require.NoError(t, write(e))
	require.Greater(t, e.Stats().Recycled, uint64(3))
	require.NoError(t, e.Close())
}
