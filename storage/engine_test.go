// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

func TestOptionsValidate(t *testing.T) {
	_, err := storage.Open("data", storage.Options{SegmentBytes: 17, QueueBytes: -1, BatchBytes: -2})
	require.ErrorIs(t, err, storage.ErrInvalid)
	for _, want := range []string{"Identity.Cluster: 0", "Identity.Node: 0", "SegmentBytes: 17, want 0 or 4096 to", "QueueBytes: -1", "BatchBytes: -2"} {
		require.ErrorContains(t, err, want)
	}
}

// TestForeignDirectory: another node's directory, a newer one, one without its
// identity, and one in use.
func TestForeignDirectory(t *testing.T) {
	fs := vfs.NewMem()
	e, err := storage.Open("a/b/data", storage.Options{Identity: testIdentity, FS: fs})
	require.NoError(t, err)
	_, err = storage.Open("a/b/data", storage.Options{Identity: testIdentity, FS: fs})
	require.ErrorIs(t, err, storage.ErrLocked)
	require.NoError(t, e.Close())

	for _, id := range []storage.Identity{{Cluster: 4, Node: 1}, {Cluster: 3, Node: 2}} {
		_, err = storage.Open("a/b/data", storage.Options{Identity: id, FS: fs})
		require.ErrorIs(t, err, storage.ErrIdentity)
		require.ErrorContains(t, err, "is of cluster 3, node 1, this node is "+id.String())
	}

	mem := vfs.NewCrashableMem()
	e, err = storage.Open("data", crashOptions(mem))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	text := string(readFile(t, mem, "IDENTITY"))
	writeFile(t, mem, "IDENTITY", []byte(strings.Replace(text, "version 1", "version 2", 1)))
	_, err = storage.Open("data", crashOptions(mem))
	require.ErrorIs(t, err, storage.ErrVersion)
	require.NoError(t, mem.Remove("data/IDENTITY"))
	_, err = storage.Open("data", crashOptions(mem))
	require.ErrorIs(t, err, storage.ErrDamaged)
	require.ErrorContains(t, err, "no file IDENTITY")
}

// TestRefusedWrites: mistakes of the caller change nothing.
func TestRefusedWrites(t *testing.T) {
	e, err := storage.Open("data", crashOptions(vfs.NewMem()))
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	ents := storagetest.Entries(5, 1, 3, 10)
	hs := func(term, vote, commit uint64) *pb.HardState {
		return &pb.HardState{Term: new(term), Vote: new(vote), Commit: new(commit)}
	}
	require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: ents, HardState: hs(5, 2, 3)}))
	want := raft.NewMemoryStorage()
	require.NoError(t, want.Append(ents))
	require.NoError(t, want.SetHardState(hs(5, 2, 3)))
	meta := func(term, index uint64) *pb.SnapshotMetadata {
		return &pb.SnapshotMetadata{Term: new(term), Index: new(index)}
	}
	for _, c := range []struct {
		err error
		sub string
		do  func() error
	}{
		{storage.ErrInvalid, "begin at index 5, the log ends at 3", func() error { return g.Append(storage.Write{Entries: storagetest.Entries(5, 5, 1, 1)}, nil) }},
		{storage.ErrInvalid, "begin at index 0", func() error { return g.Append(storage.Write{Entries: storagetest.Entries(5, 0, 1, 1)}, nil) }},
		{storage.ErrInvalid, "entry 1 has index 0, want 5", func() error {
			return g.Append(storage.Write{Entries: append(storagetest.Entries(5, 4, 1, 1), nil)}, nil)
		}},
		{storage.ErrInvalid, "entry 5 has term 4 behind term 5", func() error {
			return g.Append(storage.Write{Entries: append(storagetest.Entries(5, 4, 1, 1), storagetest.Entry(4, 5, 1))}, nil)
		}},
		{storage.ErrInvalid, "Term goes from 5 back to 4", func() error { return g.Append(storage.Write{HardState: hs(4, 2, 3)}, nil) }},
		{storage.ErrInvalid, "Vote changes in term 5 from 2 to 1", func() error { return g.Append(storage.Write{HardState: hs(5, 1, 3)}, nil) }},
		{storage.ErrInvalid, "Commit goes from 3 back to 2", func() error { return g.Append(storage.Write{HardState: hs(6, 0, 2)}, nil) }},
		{storage.ErrInvalid, "call SetSnapshot first", func() error { return g.Compact(2) }},
		{storage.ErrInvalid, "the log ends at 3", func() error { return g.Compact(4) }},
		{raft.ErrCompacted, "", func() error { return g.Compact(0) }},
		{storage.ErrInvalid, "snapshot of index 4", func() error { return g.SetSnapshot(meta(0, 4), nil) }},
		{storage.ErrInvalid, "has term 4, the log's is 5", func() error { return g.SetSnapshot(meta(4, 3), nil) }},
		{raft.ErrSnapOutOfDate, "", func() error { return g.SetSnapshot(meta(0, 0), nil) }},
		{storage.ErrInvalid, "keep the body in the host", func() error { return g.SetSnapshot(meta(0, 3), make([]byte, storage.MaxSnapshotBytes)) }},
	} {
		err := c.do()
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, c.sub)
		require.NoError(t, storagetest.Compare(g, want))
	}
	require.NoError(t, e.Close())
	require.ErrorIs(t, g.Append(storage.Write{Entries: storagetest.Entries(5, 4, 1, 1)}, nil), storage.ErrClosed)
}

// TestFailEverywhere makes each operation on the file system fail in turn, once.
// The engine then takes no more writes and calls nothing durable any more; what
// it called durable is there when the directory is opened again.
func TestFailEverywhere(t *testing.T) {
	ops := workload(rand.New(rand.NewPCG(5, 5)), 40)
	failures := 0
	for n := 0; ; n++ {
		mem := vfs.NewCrashableMem()
		count, injected := 0, false
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
				return nil
			}
			count++
			if count-1 != n {
				return nil
			}
			injected = true
			return errorfs.ErrInjected
		}))
		acked, queued := runUntilFailure(t, fs, ops)
		if !injected {
			break
		}
		failures++
		after := mem.CrashClone(vfs.CrashCloneCfg{})
		e, err := storage.Open("data", crashOptions(after))
		require.NoError(t, err, "failure %d", n)
		_, err = prefix(e, ops[:queued], acked)
		require.NoError(t, err, "failure %d", n)
		require.NoError(t, e.Close())
	}
	t.Logf("%d failures", failures)
	require.Greater(t, failures, 50)
}

// runUntilFailure returns how many writes were reported durable, and queued.
func runUntilFailure(t *testing.T, fs vfs.FS, ops []op) (acked, queued int) {
	e, err := storage.Open("data", crashOptions(fs))
	if err != nil {
		require.ErrorIs(t, err, errorfs.ErrInjected)
		return 0, 0
	}
	var failed error
	for i, o := range ops {
		err := o.toEngine(e, func(err error) {
			if err != nil {
				require.ErrorIs(t, err, storage.ErrFailed)
				require.ErrorIs(t, err, errorfs.ErrInjected)
				failed = err
				return
			}
			require.NoError(t, failed, "durable behind a failure")
			if !o.write.Lazy {
				acked = i + 1
			}
		})
		if err != nil {
			require.ErrorIs(t, err, storage.ErrFailed)
			require.ErrorIs(t, e.Sync(t.Context()), storage.ErrFailed)
			break
		}
		queued = i + 1
		if _, err := e.Step(); err != nil {
			require.ErrorIs(t, err, storage.ErrFailed)
		}
	}
	if err := e.Close(); err != nil {
		require.ErrorIs(t, err, errorfs.ErrInjected)
	}
	return acked, queued
}

// TestConcurrent writes and reads many groups from many goroutines, through
// rotation, eviction and purging. Run it with -race.
func TestConcurrent(t *testing.T) {
	e, err := storage.Open("data", storage.Options{Identity: testIdentity, FS: vfs.NewMem(), SegmentBytes: 64 << 10, CacheBytes: 32 << 10, QueueBytes: 64 << 10})
	require.NoError(t, err)
	const groups, rounds = 8, 150
	var wg sync.WaitGroup
	for id := uint64(1); id <= groups; id++ {
		g, err := e.Group(id)
		require.NoError(t, err)
		done := make(chan struct{})
		wg.Go(func() {
			defer close(done)
			if err := fillGroup(t.Context(), g, rounds); err != nil {
				t.Errorf("group %d: %v", id, err)
			}
		})
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := readGroup(g); err != nil {
					t.Errorf("group %d: %v", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	s := e.Stats()
	t.Logf("%+v", s)
	require.Equal(t, uint64(groups*rounds*4), s.Entries)
	require.Less(t, s.Syncs, s.Writes)
	require.Positive(t, s.Purged)
	require.Positive(t, s.ReadEntries)
	require.NoError(t, e.Close())
}

func fillGroup(ctx context.Context, g *storage.Group, rounds int) error {
	for i := range rounds {
		first := uint64(1 + 4*i)
		w := storage.Write{Entries: storagetest.Entries(1, first, 4, 500), HardState: &pb.HardState{Term: new(uint64(1)), Commit: new(first)}}
		if err := g.AppendWait(ctx, w); err != nil {
			return err
		}
		if i%10 != 9 {
			continue
		}
		if err := g.SetSnapshot(&pb.SnapshotMetadata{Index: new(first)}, nil); err != nil {
			return err
		}
		if err := g.Compact(first - 30); err != nil {
			return err
		}
	}
	return nil
}

func readGroup(g *storage.Group) error {
	first, _ := g.FirstIndex()
	last, _ := g.LastIndex()
	if last < first {
		return nil
	}
	ents, err := g.Entries(first, last+1, 8<<10)
	if errors.Is(err, raft.ErrCompacted) {
		return nil // in between
	}
	if err != nil {
		return err
	}
	for i, e := range ents {
		if want := storagetest.Entry(1, first+uint64(i), 500); string(e.Data) != string(want.Data) {
			return fmt.Errorf("entry %d is %v", first+uint64(i), e)
		}
	}
	return nil
}

// TestQueueBudget: while the disk is stuck, writers wait for room as long as
// their context lets them; then they go on, in their order.
func TestQueueBudget(t *testing.T) { synctest.Test(t, queueBudget) }

func queueBudget(t *testing.T) {
	var armed atomic.Bool
	gate := make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && armed.CompareAndSwap(true, false) {
			<-gate
		}
		return nil
	}))
	e, err := storage.Open("data", storage.Options{Identity: testIdentity, FS: fs, QueueBytes: 1000})
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	armed.Store(true)
	var order []int
	write := func(i int) error {
		w := storage.Write{Entries: storagetest.Entries(1, uint64(i), 1, 600)}
		return g.Append(w, func(err error) {
			require.NoError(t, err)
			order = append(order, i)
		})
	}
	require.NoError(t, write(1))
	require.NoError(t, write(2))
	synctest.Wait()
	require.Greater(t, e.Stats().QueuedBytes, int64(1200))
	notNow := func(error) { t.Error("nothing was queued") }
	require.ErrorIs(t, g.TryAppend(storage.Write{Entries: storagetest.Entries(1, 3, 1, 1)}, notNow), storage.ErrBusy)

	ctx, cancel := context.WithCancel(t.Context())
	ended, appended := make(chan error), make(chan error)
	go func() { ended <- g.AppendWait(ctx, storage.Write{Entries: storagetest.Entries(1, 3, 1, 600)}) }()
	go func() { appended <- write(3) }()
	synctest.Wait() // both wait for room now
	require.Greater(t, e.Stats().QueuedBytes, int64(1200))
	cancel()
	err = <-ended
	require.ErrorIs(t, err, storage.ErrBusy)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, order)

	close(gate)
	require.NoError(t, <-appended)
	require.NoError(t, e.Sync(t.Context()))
	require.NoError(t, g.TryAppend(storage.Write{Entries: storagetest.Entries(1, 4, 1, 1)}, func(error) { order = append(order, 4) }))
	require.NoError(t, e.Sync(t.Context()))
	require.Equal(t, []int{1, 2, 3, 4}, order)
	require.NoError(t, e.Close())
}

// TestSnapshotsCountInTheQueue: the bodies of snapshots that wait to be written are
// as many bytes as those of entries.
func TestSnapshotsCountInTheQueue(t *testing.T) {
	opts := crashOptions(vfs.NewMem())
	opts.QueueBytes = 1 << 20
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(1, 1, 3, 1)}, nil))
	body := make([]byte, 1<<20)
	require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(1))}, body))
	require.ErrorIs(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(2))}, body), storage.ErrBusy)
	require.Greater(t, e.Stats().QueuedBytes, int64(len(body)))
	_, err = e.Step()
	require.NoError(t, err)
	require.Zero(t, e.Stats().QueuedBytes)
	require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(2))}, body))
	require.NoError(t, e.Close())
}

// TestManualBusy: with nobody to make room, there is no wait.
func TestManualBusy(t *testing.T) {
	opts := crashOptions(vfs.NewMem())
	opts.QueueBytes = 1000
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(1, 1, 1, 5000)}, nil)) // over the bound alone
	err = g.Append(storage.Write{Entries: storagetest.Entries(1, 2, 1, 1)}, nil)
	require.ErrorIs(t, err, storage.ErrBusy)
	require.ErrorContains(t, err, "the bound is 1000")
	_, err = e.Step()
	require.NoError(t, err)
	require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(1, 2, 1, 1)}, nil))
	require.NoError(t, e.Close())
}

// TestGroupCommit: one sync for all that waits, of all groups.
func TestGroupCommit(t *testing.T) {
	e, err := storage.Open("data", crashOptions(vfs.NewMem()))
	require.NoError(t, err)
	before := e.Stats().Syncs
	done := 0
	for id := range uint64(100) {
		g, err := e.Group(id)
		require.NoError(t, err)
		require.NoError(t, g.Append(storage.Write{Entries: storagetest.Entries(1, 1, 1, 100)}, func(err error) {
			require.NoError(t, err)
			done++
		}))
	}
	_, err = e.Step()
	require.NoError(t, err)
	require.Equal(t, 100, done)
	require.Equal(t, before+1, e.Stats().Syncs)
	require.Equal(t, uint64(100), e.Stats().MaxBatch)

	// A lazy write causes none.
	g, err := e.Group(0)
	require.NoError(t, err)
	require.NoError(t, g.Append(storage.Write{HardState: &pb.HardState{Commit: new(uint64(1))}, Lazy: true}, func(error) { done++ }))
	_, err = e.Step()
	require.NoError(t, err)
	require.Equal(t, 101, done)
	require.Equal(t, before+1, e.Stats().Syncs)
	require.Equal(t, []uint64{0, 1, 2}, e.Groups()[:3])
	require.NoError(t, e.Close())
}

// TestPurgeEnds: an idle engine rewrites a bounded amount, and what many groups
// hold stays, while one of them writes on and compacts.
func TestPurgeEnds(t *testing.T) {
	mem := vfs.NewMem()
	opts := crashOptions(mem)
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	m := models{}
	do := func(o op) {
		t.Helper()
		require.NoError(t, o.toEngine(e, nil))
		require.NoError(t, m.apply(o))
	}
	do(op{group: 2, write: storage.Write{Entries: storagetest.Entries(1, 1, 10, 700), HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(3)), Commit: new(uint64(0))}}})
	do(op{group: 3, write: storage.Write{Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(8)), Term: new(uint64(2)), ConfState: &pb.ConfState{Voters: []uint64{4}}}}}})
	for i := range uint64(400) {
		do(op{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 1+i, 1, 2000)}})
		if i%20 == 19 {
			do(op{group: 1, snapshot: &pb.SnapshotMetadata{Index: new(i), ConfState: &pb.ConfState{Voters: []uint64{1}}}})
			do(op{group: 1, compact: i - 10})
		}
		steps := 0
		for more := true; more; steps++ {
			more, err = e.Step()
			require.NoError(t, err)
			require.Less(t, steps, 100)
		}
	}
	s := e.Stats()
	t.Logf("%+v", s)
	require.Less(t, s.SegmentBytes, 4*opts.SegmentBytes+2*s.LiveBytes)
	require.Less(t, s.MovedBytes, s.PayloadBytes)
	require.NoError(t, compareAll(e, m))
	require.NoError(t, e.Close())
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	require.NoError(t, compareAll(e, m))
	require.NoError(t, e.Close())
}

// TestLargeStates: snapshots' bodies of more than a segment are not moved
// without end.
func TestLargeStates(t *testing.T) {
	opts := crashOptions(vfs.NewMem())
	opts.SegmentBytes = storage.MinSegmentBytes
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	for round := range uint64(10) {
		for id := range uint64(10) {
			g, err := e.Group(id)
			require.NoError(t, err)
			w := storage.Write{
				Snapshot:  &pb.Snapshot{Data: make([]byte, 20_000), Metadata: &pb.SnapshotMetadata{Index: new(round + 1), Term: new(uint64(1))}},
				HardState: &pb.HardState{Term: new(uint64(1)), Commit: new(round + 1)},
			}
			require.NoError(t, g.Append(w, nil))
		}
		steps := 0
		for more := true; more; steps++ {
			more, err = e.Step()
			require.NoError(t, err)
			require.Less(t, steps, 200)
		}
	}
	s := e.Stats()
	t.Logf("%+v", s)
	require.Less(t, s.SegmentBytes, 3*s.LiveBytes)
	require.Less(t, s.WrittenBytes, uint64(3*10*10*20_000))
	require.NoError(t, e.Close())
}

// TestManySmallStates: the frames around small states weigh more than these;
// still the engine comes to rest, and keeps all of them.
func TestManySmallStates(t *testing.T) {
	opts := crashOptions(vfs.NewMem())
	opts.SegmentBytes = storage.MinSegmentBytes
	e, err := storage.Open("data", opts)
	require.NoError(t, err)
	const groups = 500
	for round := range uint64(20) {
		for id := range uint64(groups) {
			g, err := e.Group(id)
			require.NoError(t, err)
			w := storage.Write{HardState: &pb.HardState{Term: new(round + 1)}}
			if round == 0 {
				w.Entries = storagetest.Entries(1, 1, 1, 1)
			}
			require.NoError(t, g.Append(w, nil))
		}
		steps := 0
		for more := true; more; steps++ {
			more, err = e.Step()
			require.NoError(t, err)
			require.Less(t, steps, 2000)
		}
	}
	s := e.Stats()
	t.Logf("%+v", s)
	require.Less(t, s.WrittenBytes, uint64(4*20*groups*100))
	require.Less(t, s.SegmentBytes, int64(groups*1000))
	require.NoError(t, e.Close())
	e, err = storage.Open("data", opts)
	require.NoError(t, err)
	for id := range uint64(groups) {
		g, err := e.Group(id)
		require.NoError(t, err)
		hs, _, err := g.InitialState()
		require.NoError(t, err)
		require.Equal(t, uint64(20), hs.GetTerm())
		ents, err := g.Entries(1, 2, 1)
		require.NoError(t, err)
		require.Len(t, ents, 1)
	}
	require.NoError(t, e.Close())
}

// TestOnDisk is a round on the real file system: rotation, purging, recycling,
// the lock, and another life.
func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	opts := storage.Options{Identity: testIdentity, SegmentBytes: 64 << 10, CacheBytes: 10 << 10}
	e, err := storage.Open(dir, opts)
	require.NoError(t, err)
	_, err = storage.Open(dir, opts)
	require.ErrorIs(t, err, storage.ErrLocked)
	m := models{}
	do := func(o op) {
		t.Helper()
		require.NoError(t, m.apply(o))
		require.NoError(t, o.toEngine(e, nil))
	}
	do(op{group: 2, write: storage.Write{Entries: storagetest.Entries(1, 1, 3, 20)}})
	for i := range uint64(60) {
		do(op{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 1+i*4, 4, 5000)}})
		require.NoError(t, e.Sync(t.Context()))
		if i%5 == 4 {
			do(op{group: 1, snapshot: &pb.SnapshotMetadata{Index: new(i * 4), ConfState: &pb.ConfState{Voters: []uint64{1}}}})
			do(op{group: 1, compact: i*4 - 3})
		}
	}
	require.NoError(t, e.Sync(t.Context()))
	require.NoError(t, compareAll(e, m))
	require.NoError(t, e.Close())
	s := e.Stats()
	require.Positive(t, s.Recycled)
	require.Less(t, s.SegmentBytes, int64(400<<10))

	e, err = storage.Open(dir, opts)
	require.NoError(t, err)
	require.Zero(t, e.Recovery().CutBytes)
	require.NoError(t, compareAll(e, m))
	require.NoError(t, e.Close())
}
