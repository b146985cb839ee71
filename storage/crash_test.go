// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

var crashSeeds = flag.Int("crashseeds", 3, "workloads of TestCrashEverywhere")

var testIdentity = storage.Identity{Cluster: 3, Node: 1}

// op is one write of a workload, to the engine and to the model.
type op struct {
	group    uint64
	write    storage.Write
	snapshot *pb.SnapshotMetadata // SetSnapshot, if not nil
	compact  uint64               // Compact, if not 0
}

func (o op) String() string {
	switch {
	case o.snapshot != nil:
		return fmt.Sprintf("group %d: snapshot %d", o.group, o.snapshot.GetIndex())
	case o.compact != 0:
		return fmt.Sprintf("group %d: compact %d", o.group, o.compact)
	}
	s := fmt.Sprintf("group %d: lazy %v", o.group, o.write.Lazy)
	if o.write.Snapshot != nil {
		s += fmt.Sprintf(", install %d", o.write.Snapshot.GetMetadata().GetIndex())
	}
	if n := len(o.write.Entries); n > 0 {
		s += fmt.Sprintf(", entries %d to %d", o.write.Entries[0].GetIndex(), o.write.Entries[n-1].GetIndex())
	}
	return fmt.Sprintf("%s, %v", s, o.write.HardState)
}

func (o op) toEngine(e *storage.Engine, done func(error)) error {
	g, err := e.Group(o.group)
	if err != nil {
		return err
	}
	switch {
	case o.snapshot != nil:
		return g.SetSnapshot(o.snapshot, nil)
	case o.compact != 0:
		return g.Compact(o.compact)
	}
	return g.Append(o.write, done)
}

// models are the groups as they should be after a prefix of the workload.
type models map[uint64]*raft.MemoryStorage

func (m models) group(id uint64) *raft.MemoryStorage {
	if m[id] == nil {
		m[id] = raft.NewMemoryStorage()
	}
	return m[id]
}

func (m models) apply(o op) error {
	g := m.group(o.group)
	switch {
	case o.snapshot != nil:
		_, err := g.CreateSnapshot(o.snapshot.GetIndex(), o.snapshot.GetConfState(), nil)
		return err
	case o.compact != 0:
		return g.Compact(o.compact)
	}
	var errs []error
	if s := o.write.Snapshot; s != nil {
		errs = append(errs, g.ApplySnapshot(s))
	}
	if o.write.HardState != nil {
		errs = append(errs, g.SetHardState(o.write.HardState))
	}
	return errors.Join(append(errs, g.Append(o.write.Entries))...)
}

// workload makes n random writes to three groups.
func workload(rng *rand.Rand, n int) []op {
	m := models{}
	var ops []op
	terms := map[uint64]uint64{}
	for len(ops) < n {
		ops = append(ops, m.draw(rng, terms, []int{0, 10, 900, 5000, 12000}))
	}
	return ops
}

// draw makes a random write to one of three groups, with entries of some sizes, and applies it to the models. terms are
// the last of each group.
func (m models) draw(rng *rand.Rand, terms map[uint64]uint64, sizes []int) op {
	o := op{group: 1 + rng.Uint64N(3)}
	g := m.group(o.group)
	first, _ := g.FirstIndex()
	last, _ := g.LastIndex()
	snap, _ := g.Snapshot()
	at := snap.GetMetadata().GetIndex()
	switch k := rng.IntN(12); {
	case k == 0 && at < last:
		o.snapshot = &pb.SnapshotMetadata{Index: new(at + 1 + rng.Uint64N(last-at)), ConfState: &pb.ConfState{Voters: []uint64{rng.Uint64N(5)}}}
	case k <= 2 && at >= first:
		o.compact = first + rng.Uint64N(at-first+1)
	case k == 3 && rng.IntN(3) == 0:
		terms[o.group]++
		o.write.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(last + 1 + rng.Uint64N(4)), Term: new(terms[o.group]), ConfState: &pb.ConfState{Voters: []uint64{9}}}}
		last = o.write.Snapshot.GetMetadata().GetIndex()
		o.write.HardState = &pb.HardState{Term: new(terms[o.group]), Commit: commitTo(g, last).Commit}
	case k == 4:
		o.write.HardState, o.write.Lazy = commitTo(g, last), true
	default:
		from := last + 1
		if lo := max(first, at+1); rng.IntN(4) == 0 && lo <= last {
			from = lo + rng.Uint64N(last-lo+1)
			terms[o.group]++
		}
		terms[o.group] = max(1, terms[o.group])
		size := sizes[rng.IntN(len(sizes))]
		o.write.Entries = storagetest.Entries(terms[o.group], from, 1+rng.IntN(4), size)
		if rng.IntN(2) == 0 {
			o.write.HardState = &pb.HardState{Term: new(terms[o.group]), Commit: commitTo(g, 0).Commit}
		}
		o.write.Lazy = rng.IntN(5) == 0
	}
	if err := m.apply(o); err != nil {
		panic(fmt.Sprintf("the workload is at odds with the model: %v: %v", o, err))
	}
	return o
}

// commitTo returns g's hard state with its commit index at least to.
func commitTo(g *raft.MemoryStorage, to uint64) *pb.HardState {
	hs, _, _ := g.InitialState()
	return &pb.HardState{Term: new(hs.GetTerm()), Vote: new(hs.GetVote()), Commit: new(max(to, hs.GetCommit()))}
}

// prefix returns how many writes of the workload e reflects, which must be at
// least acked: all groups must look as after the same prefix.
func prefix(e *storage.Engine, ops []op, acked int) (int, error) {
	m := models{}
	var last error
	for k := 0; ; k++ {
		if k >= acked {
			if last = compareAll(e, m); last == nil {
				return k, nil
			}
		}
		if k == len(ops) {
			return 0, fmt.Errorf("the log is no prefix of %d to %d writes; the last differs by: %w", acked, k, last)
		}
		if err := m.apply(ops[k]); err != nil {
			return 0, err
		}
	}
}

func compareAll(e *storage.Engine, m models) error {
	for id := uint64(1); id <= 3; id++ {
		g, err := e.Group(id)
		if err != nil {
			return err
		}
		if err := storagetest.Compare(g, m.group(id)); err != nil {
			return fmt.Errorf("group %d: %w", id, err)
		}
	}
	return nil
}

func crashOptions(fs vfs.FS) storage.Options {
	return storage.Options{Identity: testIdentity, FS: fs, Manual: true, SegmentBytes: 32 << 10, CacheBytes: 20 << 10, Spares: 1}
}

// crasher crashes copies of a file system at every one of its operations.
type crasher struct {
	t      *testing.T
	rng    *rand.Rand
	mem    *vfs.MemFS
	ops    []op
	queued int // writes that the engine has taken
	acked  int // writes up to the last that was reported durable
	deep   bool
	brief  bool // of the outcomes of a crash one is looked at
	// Points and outcomes, so that the test can tell that it tested something.
	points, torn, more int
}

func (c *crasher) wrap() vfs.FS {
	return errorfs.Wrap(c.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileClose, errorfs.OpFilePreallocate: // nothing that a crash could undo
		case errorfs.OpOpen:
			c.crash(op)
		default:
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				c.crash(op)
			}
		}
		return nil
	}))
}

// crash opens what a crash at this moment leaves: only what was synced, some
// unsynced blocks, or all of it.
func (c *crasher) crash(at errorfs.Op) {
	c.points++
	percents := []int{0, 10 + c.rng.IntN(80), 100}
	if c.brief {
		percents = percents[1:2]
	}
	for _, percent := range percents {
		fs := c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
		c.reopen(fs, fmt.Sprintf("crash %d at %v %s, %d%% of the unsynced data stays", c.points, at.Kind, at.Path, percent))
	}
}

func (c *crasher) reopen(fs *vfs.MemFS, what string) {
	opts := crashOptions(fs)
	if c.deep && c.rng.IntN(50) == 0 {
		// Crash once more, during recovery.
		inner := &crasher{t: c.t, rng: c.rng, mem: fs, ops: c.ops, queued: c.queued, acked: c.acked}
		opts.FS = inner.wrap()
	}
	e, err := storage.Open("data", opts)
	require.NoError(c.t, err, what)
	k, err := prefix(e, c.ops[:c.queued], c.acked)
	require.NoError(c.t, err, what)
	if e.Recovery().CutBytes > 0 {
		c.torn++
	}
	if k > c.acked {
		c.more++
	}
	// What Open showed stays, even if power fails at once.
	again, err := storage.Open("data", crashOptions(fs.CrashClone(vfs.CrashCloneCfg{})))
	require.NoError(c.t, err, what)
	if k2, err := prefix(again, c.ops[:c.queued], k); err != nil || k2 != k {
		// Another prefix may look the same, but not a shorter one: prefix
		// returns the first that fits.
		require.NoError(c.t, err, what)
		require.Equal(c.t, k, k2, what)
	}
	require.NoError(c.t, again.Close())
	require.NoError(c.t, e.Close())
}

// TestCrashEverywhere crashes at every operation on the file system of a
// workload that rotates, purges and recycles segments. After each, the log is a
// prefix of the writes, in all groups alike, that holds all that was reported
// durable; and it opens again after a second crash.
func TestCrashEverywhere(t *testing.T) {
	var points, torn, more int
	var purged, recycled, moved uint64
	seeds := *crashSeeds
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 7))
			c := &crasher{t: t, rng: rng, mem: vfs.NewCrashableMem(), ops: workload(rng, 60), deep: true}
			e, err := storage.Open("data", crashOptions(c.wrap()))
			require.NoError(t, err)
			for i, o := range c.ops {
				c.queued = i + 1 // while the engine takes it, it may be written
				require.NoError(t, o.toEngine(e, func(err error) {
					require.NoError(t, err)
					if !o.write.Lazy {
						c.acked = i + 1
					}
				}), "%d: %v", i, o)
				for rng.IntN(3) == 0 {
					if more, err := e.Step(); !more {
						require.NoError(t, err)
						break
					}
				}
			}
			require.NoError(t, e.Sync(t.Context()))
			c.acked = len(c.ops)
			purged += e.Stats().Purged
			recycled += e.Stats().Recycled
			moved += e.Stats().MovedEntries
			require.NoError(t, e.Close())
			points, torn, more = points+c.points, torn+c.torn, more+c.more
		})
	}
	t.Logf("%d crash points, %d torn tails cut, %d times more than was reported durable", points, torn, more)
	t.Logf("%d segments purged, %d recycled, %d entries moved", purged, recycled, moved)
	require.Positive(t, torn)
	require.Positive(t, more)
	require.Positive(t, purged)
	require.Positive(t, recycled)
	require.Positive(t, moved)
}

// unlocked is a file system whose locks ended with the process that held them.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// TestKillThenPowerFailure kills the process, which leaves unsynced writes in
// the caches of the operating system, where the next one reads them; then the
// power fails at any operation of its start. What it cut, sealed or called
// durable by then must not turn the rest into damage.
func TestKillThenPowerFailure(t *testing.T) {
	points, torn := 0, 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 9))
		mem := vfs.NewCrashableMem()
		ops := workload(rng, 12)
		c := &crasher{t: t, rng: rng, mem: mem, ops: ops, queued: len(ops)}
		killed, err := storage.Open("data", crashOptions(mem))
		require.NoError(t, err)
		for i, o := range ops {
			o.write.Lazy = i > 4 // unsynced, unless a segment fills up
			require.NoError(t, o.toEngine(killed, func(err error) {
				require.NoError(t, err)
				if !o.write.Lazy {
					c.acked = i + 1
				}
			}))
			_, err := killed.Step()
			require.NoError(t, err)
		}
		e, err := storage.Open("data", crashOptions(unlocked{c.wrap()}))
		require.NoError(t, err)
		k, err := prefix(e, ops, c.acked)
		require.NoError(t, err)
		require.Equal(t, len(ops), k, "nothing that was written is lost by a kill")
		points, torn = points+c.points, torn+c.torn
	}
	t.Logf("%d crash points, %d torn tails", points, torn)
	require.Positive(t, torn)
}

// TestKillAnywhereThenPowerFailure kills the process at every operation of a workload that rotates, purges
// and recycles segments; then the power fails at any operation of the next start. Names that the killed
// process had not synced are in the caches, as its writes are.
func TestKillAnywhereThenPowerFailure(t *testing.T) {
	points, recycled := 0, uint64(0)
	for n, ended := 0, false; !ended; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 13))
		mem := vfs.NewCrashableMem()
		l := &lives{t: t, rng: rng, mem: mem, left: n}
		ops := workload(rand.New(rand.NewPCG(3, 13)), 26)
		c := &crasher{t: t, rng: rng, mem: mem, ops: ops, brief: true}
		opts := crashOptions(l.fs())
		opts.SegmentBytes = storage.MinSegmentBytes
		killed, err := storage.Open("data", opts)
		for i := 0; err == nil && i < len(ops); i++ {
			if err = ops[i].toEngine(killed, func(err error) {
				if err == nil && !ops[i].write.Lazy {
					c.acked = i + 1
				}
			}); err == nil {
				c.queued = i + 1
				_, err = killed.Step()
			}
		}
		if ended = err == nil; ended {
			recycled = killed.Stats().Recycled
		}
		e, err := storage.Open("data", crashOptions(unlocked{c.wrap()}))
		require.NoError(t, err, "killed at operation %d", n)
		_, err = prefix(e, ops[:c.queued], c.acked)
		require.NoError(t, err, "killed at operation %d", n)
		points += c.points
	}
	t.Logf("%d crash points, %d segments recycled", points, recycled)
	require.Positive(t, points)
	require.Positive(t, recycled)
}

// TestKilledBeforeItsDirectoryIsSynced: a process makes directories, and is killed
// before it has synced the names of all. The next one finds them there.
func TestKilledBeforeItsDirectoryIsSynced(t *testing.T) {
	for killed := 1; killed <= 4; killed++ {
		mem, dirs := vfs.NewCrashableMem(), 0
		opts := crashOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpOpenDir {
				if dirs++; dirs == killed {
					return errorfs.ErrInjected
				}
			}
			return nil
		})))
		_, err := storage.Open("a/b/data", opts)
		require.ErrorIs(t, err, errorfs.ErrInjected)
		e, err := storage.Open("a/b/data", opts)
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{HardState: &pb.HardState{Term: new(uint64(7))}}))
		e, err = storage.Open("a/b/data", crashOptions(mem.CrashClone(vfs.CrashCloneCfg{})))
		require.NoError(t, err)
		g, err = e.Group(1)
		require.NoError(t, err)
		hs, _, err := g.InitialState()
		require.NoError(t, err)
		require.EqualValues(t, 7, hs.GetTerm(), "killed at directory %d", killed)
		require.NoError(t, e.Close())
	}
}
