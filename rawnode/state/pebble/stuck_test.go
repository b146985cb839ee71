// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// slow is a disk whose writes and syncs return only when the disk answers.
type slow struct {
	mu      sync.Mutex
	answers chan struct{} // closed: the disk answers; nil: it always does
	waits   atomic.Int64
}

func (s *slow) String() string { return "slow" }

func (s *slow) stick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = make(chan struct{})
}

func (s *slow) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.answers)
	s.answers = nil
}

// MaybeError implements errorfs.Injector.
func (s *slow) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpLink, errorfs.OpRename, errorfs.OpReuseForWrite,
		errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpRemove:
	default:
		return nil
	}
	s.mu.Lock()
	answers := s.answers
	s.mu.Unlock()
	if answers != nil {
		s.waits.Add(1)
		<-answers
		s.waits.Add(-1)
	}
	return nil
}

// inTime fails the test, with all goroutines, if f does not return.
func inTime(t testing.TB, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		panic(what + " does not return")
	}
}

// load applies commands until one has an error.
func load(s *pebblestate.State, from uint64) <-chan error {
	done := make(chan error, 1)
	go func() {
		for i := from; ; i++ {
			if _, err := s.Apply(rawnode.Batch{Index: i, Commands: [][]byte{fmt.Appendf(nil, "+%d%s", i, strings.Repeat("x", 2000))}}); err != nil {
				done <- err
				return
			}
		}
	}()
	return done
}

// backup reads a snapshot to its end.
func backup(s *pebblestate.State) error {
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, snap)
	return errors.Join(err, snap.Close())
}

// A disk that does not answer holds up writes alone. Close gives up in bounded time, says so, and
// keeps the directory locked, because a write is still on its way to the disk.
func TestStuckDisk(t *testing.T) {
	t.Parallel()
	disk := &slow{}
	mem := vfs.NewMem()
	db := open(t, errorfs.Wrap(mem, disk))
	s := group(t, db, 1)
	apply(t, s, 1, "+before")
	require.NoError(t, db.Flush())
	disk.stick()
	loading := load(s, 2)
	require.Eventually(t, func() bool { return disk.waits.Load() > 0 }, patience, time.Millisecond)

	require.NoError(t, inTime(t, "View", func() error { _, err := text(s); return err }))
	require.NoError(t, inTime(t, "Snapshot", func() error { return backup(s) }))
	require.NoError(t, inTime(t, "Durable", func() error { _, err := s.Durable(); return err }))
	require.NoError(t, inTime(t, "another group", func() error {
		other, err := db.Group(2, count, pebblestate.GroupOptions{})
		if err == nil {
			_, err = text(other)
		}
		return err
	}))
	s.Interrupt(errors.New("the host has stopped"))
	require.ErrorIs(t, inTime(t, "Apply", func() error { return <-loading }), state.ErrInterrupted)
	err := inTime(t, "Close", db.Close)
	require.ErrorIs(t, err, pebblestate.ErrFailed)
	require.ErrorContains(t, err, "does not answer")
	_, err = pebblestate.Open(pebblestate.Options{Dir: "state", FS: mem})
	require.ErrorIs(t, err, state.ErrLocked)

	disk.answer()
	require.Eventually(t, func() bool {
		db, err = pebblestate.Open(pebblestate.Options{Dir: "state", FS: mem})
		return err == nil
	}, patience, time.Millisecond)
	found, _, err := group(t, db, 1).Load()
	require.NoError(t, err)
	require.GreaterOrEqual(t, found, uint64(1))
	require.NoError(t, db.Close())
}

// A database cannot be opened on a disk that does not answer.
func TestOpenOnAStuckDisk(t *testing.T) {
	t.Parallel()
	disk := &slow{}
	mem := vfs.NewMem()
	db := open(t, errorfs.Wrap(mem, disk))
	apply(t, group(t, db, 1), 1, "+before")
	require.NoError(t, db.Close())
	disk.stick()
	err := inTime(t, "Open", func() error {
		_, err := pebblestate.Open(pebblestate.Options{Dir: "state", FS: errorfs.Wrap(mem, disk)})
		return err
	})
	require.ErrorIs(t, err, pebblestate.ErrFailed)
	disk.answer()
}

// While the disk is full, and as many commands wait as can, everything else goes on or says why it
// cannot: another group is opened, too, and its leftovers of a crash are removed later.
func TestFullDiskHoldsUpWritersAlone(t *testing.T) {
	f := &faulty{fs: vfs.NewCrashableMem(), err: syscall.ENOSPC}
	db := open(t, errorfs.Wrap(f.fs, f))
	s := group(t, db, 1)
	apply(t, s, 1, "+before")
	require.NoError(t, db.Flush())
	f.n.Store(0)
	f.from.Store(1)
	loading := load(s, 2)
	require.Eventually(t, func() bool { return s.Stalled() != nil }, patience, time.Millisecond)
	for range 3 {
		require.NoError(t, inTime(t, "View", func() error { _, err := text(s); return err }))
		require.NoError(t, inTime(t, "Snapshot", func() error { return backup(s) }))
		require.NoError(t, inTime(t, "Durable", func() error { _, err := s.Durable(); return err }))
		require.ErrorIs(t, inTime(t, "Flush", db.Flush), pebblestate.ErrFull)
	}
	require.NoError(t, inTime(t, "another group", func() error { _, err := db.Group(2, count, pebblestate.GroupOptions{}); return err }))
	s.Interrupt(errors.New("the host has stopped"))
	require.Error(t, inTime(t, "Apply", func() error { return <-loading }))
	require.ErrorIs(t, inTime(t, "Load", func() error { _, _, err := s.Load(); return err }), pebblestate.ErrFull)
	open, err := s.Snapshot()
	require.NoError(t, err)
	require.ErrorIs(t, inTime(t, "Close", db.Close), pebblestate.ErrFull)
	_ = inTime(t, "Close of a snapshot behind it", open.Close) // which may close the database
}
