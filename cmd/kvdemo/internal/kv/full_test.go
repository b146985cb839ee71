// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// faulty is a disk of which one can say that it is full.
type faulty struct {
	fs   *vfs.MemFS
	ops  atomic.Int64 // writing ones so far
	from atomic.Int64 // the first that finds no room; 0: none does
	// fails says which operations find no room.
	fails func(errorfs.Op) bool
	err   error
}

func newFaulty() *faulty {
	return &faulty{fs: vfs.NewCrashableMem(), fails: needsRoom, err: &errno{syscall.ENOSPC}}
}

// errno is how an operating system says it.
type errno struct{ syscall.Errno }

func (e *errno) Unwrap() error { return e.Errno }

func (f *faulty) String() string { return "faulty" }

func (f *faulty) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || !f.fails(op) {
		return nil
	}
	if n, from := f.ops.Add(1), f.from.Load(); from > 0 && n >= from {
		return f.err
	}
	return nil
}

// needsRoom are the operations that a full disk refuses, before any sync.
func needsRoom(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpLink, errorfs.OpRename, errorfs.OpMkdirAll, errorfs.OpReuseForWrite:
		return true
	}
	return false
}

func (f *faulty) open(t *testing.T) (*DB, *Store, error) {
	db, err := Open("state", testIdentity, Options{
		FS: errorfs.Wrap(f.fs, f), MemTableBytes: 64 << 10,
		Retry: time.Millisecond, Patience: 50 * time.Millisecond, Logf: t.Logf,
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := db.Group(1)
	require.NoError(t, err)
	return db, s, nil
}

const patient = 30 * time.Second

// The disk is full from one operation on, for each of a workload's: the store
// waits and says so, reads go on, and when there is room so does it. Nothing
// applied is lost.
func TestFullDiskAtEachOperation(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for from := int64(1); ; from += step {
		if !fullAt(t, from) {
			require.Greater(t, from, int64(20), "the workload is too small")
			return
		}
	}
}

// fullAt reports whether the workload came to the operation.
func fullAt(t *testing.T, from int64) bool {
	f := newFaulty()
	db, s, err := f.open(t)
	require.NoError(t, err)
	apply(t, s, put("before", "there"))
	require.NoError(t, db.Flush())
	f.ops.Store(0)
	f.from.Store(from)

	done := make(chan error, 1)
	go func() { done <- fill(s, fillIndex) }()
	for deadline := time.Now().Add(patient); db.Stalled() == nil; time.Sleep(100 * time.Microsecond) {
		select {
		case err := <-done: // everything had room
			require.NoError(t, err)
			if f.ops.Load() >= from { // what is in the background waits
				done <- nil
				break
			}
			f.from.Store(0)
			require.NoError(t, db.Close())
			return false
		default:
		}
		require.True(t, time.Now().Before(deadline), "operation %d: neither done nor stalled", from)
	}
	require.ErrorIs(t, db.Stalled(), pebblestate.ErrFull)
	require.ErrorIs(t, db.Stalled(), syscall.ENOSPC)
	require.ErrorIs(t, s.Stalled(), pebblestate.ErrFull)
	require.Equal(t, "there", string(readAll(t, s, "before")))
	require.ErrorIs(t, db.Flush(), pebblestate.ErrFull)
	durable, err := s.Durable()
	require.NoError(t, err)

	left := f.fs.CrashClone(vfs.CrashCloneCfg{})
	f.from.Store(0)
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patient):
		t.Fatalf("operation %d: there is room again, and the store does not go on", from)
	}
	require.NoError(t, db.Err())
	require.NoError(t, flushEventually(db))
	require.NoError(t, db.Stalled())
	requireFilled(t, s, fillIndex)
	require.NoError(t, db.Close())

	// A node that is killed while the disk is full.
	f.fs = left
	db, s, err = f.open(t)
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Applied(), durable)
	requireFilled(t, s, s.Applied())
	require.NoError(t, db.Close())
	return true
}

// flushEventually flushes; what waited for room needs a moment to go on.
func flushEventually(db *DB) error {
	for deadline := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		err := db.Flush()
		if !errors.Is(err, pebblestate.ErrFull) || time.Now().After(deadline) {
			return err
		}
	}
}

// fillIndex is the index that fill brings an almost empty store to.
const fillIndex = 40

func fill(s *Store, to uint64) error {
	for s.Applied() < to {
		index := s.Applied() + 1
		commands := [][]byte{put(fmt.Sprint("key", index), string(pattern(9000, byte(index)))), put("index", fmt.Sprint(index))}
		if _, err := s.Apply(rawnode.Batch{Index: index, Commands: commands}); err != nil {
			return err
		}
	}
	return nil
}

// requireFilled checks what fill wrote, up to an index.
func requireFilled(t *testing.T, s *Store, index uint64) {
	require.Equal(t, index, s.Applied())
	for i := uint64(2); i <= index; i++ {
		require.Equal(t, pattern(9000, byte(i)), readAll(t, s, fmt.Sprint("key", i)))
	}
	requireNoOrphans(t, s)
}

// What else can go wrong with a disk ends the store, not the process: it says
// so, and what was durable is there after a restart. So does a sync that finds
// no room, as nobody knows what it left.
func TestDiskFails(t *testing.T) {
	syncs := func(op errorfs.Op) bool {
		k := op.Kind
		return k == errorfs.OpFileSync || k == errorfs.OpFileSyncData || k == errorfs.OpFileSyncTo
	}
	for name, c := range map[string]struct {
		fails func(errorfs.Op) bool
		err   error
	}{
		"io error":       {needsRoom, &errno{syscall.EIO}},
		"sync io error":  {syncs, &errno{syscall.EIO}},
		"sync when full": {syncs, &errno{syscall.ENOSPC}},
	} {
		for from := int64(1); from < 12; from++ {
			t.Run(fmt.Sprint(name, " at ", from), func(t *testing.T) { failAt(t, from, c.fails, c.err) })
		}
	}
}

func failAt(t *testing.T, from int64, fails func(errorfs.Op) bool, failure error) {
	f := newFaulty()
	f.fails, f.err = fails, failure
	db, s, err := f.open(t)
	require.NoError(t, err)
	apply(t, s, put("before", "there"))
	require.NoError(t, db.Flush())
	f.ops.Store(0)
	f.from.Store(from)
	go func() { // it may wait for ever, as the node is to be stopped
		for to := uint64(fillIndex); fill(s, to) == nil && db.Flush() == nil; to++ {
		}
	}()
	select {
	case <-db.Failed():
	case <-time.After(patient):
		t.Fatal("the store did not notice")
	}
	require.ErrorIs(t, db.Err(), pebblestate.ErrFailed)
	require.ErrorIs(t, db.Err(), failure)
	require.ErrorIs(t, db.Flush(), pebblestate.ErrFailed)
	durable, err := s.Durable()
	require.NoError(t, err)
	require.ErrorIs(t, db.Close(), pebblestate.ErrFailed)
	f.from.Store(0)

	f.fs = f.fs.CrashClone(vfs.CrashCloneCfg{})
	db, s, err = f.open(t)
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Applied(), max(1, durable))
	requireFilled(t, s, s.Applied())
	to := s.Applied() + 3
	require.NoError(t, fill(s, to), "the log replays the rest")
	requireFilled(t, s, to)
	require.NoError(t, db.Close())
}

// Opening and closing on a full disk end with an error, not never.
func TestFullDiskOpenAndClose(t *testing.T) {
	f := newFaulty()
	f.from.Store(1)
	_, _, err := f.open(t)
	require.ErrorIs(t, err, pebblestate.ErrFull)
	f.from.Store(0)
	db, s, err := f.open(t)
	require.NoError(t, err)
	apply(t, s, put("k", "v"))
	f.from.Store(1)
	require.ErrorIs(t, db.Close(), pebblestate.ErrFull, "the state cannot be flushed")
	f.from.Store(0)
	db, s, err = f.open(t)
	require.NoError(t, err, "the lock is free again")
	require.Zero(t, s.Applied(), "the log replays it")
	require.NoError(t, db.Close())
}

// A host that ends does not wait for room: neither Apply nor Restore does then, nor a
// flush that is under way. The next host goes on from what is there.
func TestFullDiskInterrupted(t *testing.T) {
	_, source := openMem(t)
	apply(t, source, put("from", "a snapshot"))
	for name, wait := range map[string]func(*Store) error{
		"apply": func(s *Store) error { return fill(s, fillIndex) },
		"restore": func(s *Store) error {
			snap, err := source.Snapshot()
			if err != nil {
				return err
			}
			return errors.Join(s.Restore(snap.Meta(), snap), snap.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty()
			db, s, err := f.open(t)
			require.NoError(t, err)
			apply(t, s, put("before", "there"))
			f.ops.Store(0)
			f.from.Store(1)
			require.ErrorIs(t, db.Flush(), pebblestate.ErrFull, "which finds it out")
			require.ErrorIs(t, db.Stalled(), pebblestate.ErrFull)
			before := s.Applied()
			done := make(chan error, 1)
			go func() { done <- wait(s) }()
			s.Interrupt(errors.New("the host has ended"))
			s.Interrupt(errors.New("once more"))
			select {
			case err = <-done:
				require.ErrorIs(t, err, state.ErrInterrupted)
			case <-time.After(patient):
				t.Fatal("it waits for room")
			}
			require.Equal(t, before, s.Applied())

			_, _, err = s.Load()
			require.ErrorIs(t, err, pebblestate.ErrFull, "what it returns is to be durable")
			f.from.Store(0)
			require.NoError(t, flushEventually(db))
			_, _, err = s.Load()
			require.NoError(t, err)
			require.NoError(t, wait(s))
			require.NoError(t, db.Close())
		})
	}
}

// While Pebble waits for room for its manifest, every read goes on, and nothing that a node
// does for its operators waits.
func TestNothingButWritesWaitsForTheManifest(t *testing.T) {
	f := newFaulty()
	f.fails = func(op errorfs.Op) bool { return needsRoom(op) && strings.Contains(op.Path, "MANIFEST") }
	db, s, err := f.open(t)
	require.NoError(t, err)
	large := pattern(PartBytes+1, 1)
	apply(t, s, append(uploadOf(UploadID{1}, "large", large), put("k", "v"))...)
	apply(t, s, raiseLevel())
	require.NoError(t, db.Flush())
	act(t, s, Action{Kind: ActDeadline, Key: "k", Deadline: 1})
	flushes := db.Metrics().Flush.Count
	f.ops.Store(0)
	f.from.Store(1)
	require.ErrorIs(t, db.Flush(), pebblestate.ErrFull)
	for name, call := range map[string]func() error{
		"List": func() error { _, err := s.List(Query{Digests: true}); return err },
		"Look": func() error {
			_, err := s.Look([]Action{{Kind: ActHas, Key: "k"}, {Kind: ActGet, Key: "k"}})
			return err
		},
		"System":   func() error { _, _, err := s.System(); return err },
		"Deadline": func() error { _, err := s.Deadline("k"); return err },
		"Due":      func() error { _, err := s.Due(10); return err },
		"Durable":  func() error { _, err := s.Durable(); return err },
		"Value":    func() error { require.Equal(t, large, readAll(t, s, "large")); return nil },
		"Export":   func() error { return exportAll(s) },
		"Snapshot": func() error { snapshotBytes(t, s); return nil },
		"Metrics":  func() error { require.NotNil(t, db.Metrics()); return nil },
		"Upgrade":  func() error { require.ErrorIs(t, db.Upgrade(2), pebblestate.ErrFull); return nil },
	} {
		done := make(chan error, 1)
		go func() { done <- call() }()
		select {
		case err := <-done:
			require.NoError(t, err, name)
		case <-time.After(patient):
			t.Errorf("%s waits for room", name)
		}
	}
	f.from.Store(0)
	require.NoError(t, flushEventually(db))
	require.Greater(t, db.Metrics().Flush.Count, flushes)
	require.NoError(t, db.Close())
}

// exportAll reads an export to its end.
func exportAll(s *Store) error {
	e, err := s.Export()
	if err != nil {
		return err
	}
	err = e.Each(func(x *Exported) error {
		for {
			if _, err := x.Next(); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	})
	return errors.Join(err, e.Close())
}

// slow is a disk that takes nothing for a while, and says nothing either.
type slow struct{ until chan struct{} }

func (s *slow) String() string { return "slow" }

func (s *slow) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpCreate {
		<-s.until
	}
	return nil
}

// Pebble takes no more when its memory is full and the disk is slow. A host that ends does
// not wait with it, and the next host goes on from what became of the batch.
func TestHostEndsWhileABatchWaitsInPebble(t *testing.T) {
	d := &slow{until: make(chan struct{})}
	close(d.until)
	fs := vfs.NewCrashableMem()
	stalled := make(chan struct{}, 1000)
	db, err := Open("state", testIdentity, Options{
		FS: errorfs.Wrap(fs, d), MemTableBytes: 64 << 10, Logf: t.Logf,
		Adjust: func(o *pebble.Options) {
			o.EventListener.WriteStallBegin = func(pebble.WriteStallBeginInfo) { stalled <- struct{}{} }
		},
	})
	require.NoError(t, err)
	s, err := db.Group(1)
	require.NoError(t, err)
	apply(t, s, put("before", "there"))
	d.until = make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- fill(s, 10*fillIndex) }()
	select {
	case <-stalled:
	case err := <-done:
		t.Fatalf("no batch waits, and the last one ended with %v", err)
	}
	require.NoError(t, db.Stalled(), "the disk is not full")
	s.Interrupt(errors.New("the host has ended"))
	select {
	case err := <-done:
		require.ErrorIs(t, err, state.ErrInterrupted)
	case <-time.After(patient):
		t.Fatal("the host waits for the disk")
	}
	require.Equal(t, "there", string(readAll(t, s, "before")))
	close(d.until)
	index, _, err := s.Load()
	require.NoError(t, err)
	require.Equal(t, s.Applied(), index)
	requireFilled(t, s, index)
	require.NoError(t, fill(s, index+fillIndex))
	requireFilled(t, s, index+fillIndex)
	require.NoError(t, db.Close())
}
