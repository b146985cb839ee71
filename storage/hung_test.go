// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
)

// Options.Hung is called once, when no write has ended for HungAfter although one waits: not before, and
// not for an engine that rests, or whose disk is slow and gets on.
func TestHungIsCalledWhenNoWriteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shut atomic.Bool
		var calls atomic.Int64
		const after = time.Minute
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			for op.Kind.ReadOrWrite() == errorfs.OpIsWrite && shut.Load() {
				time.Sleep(time.Second)
			}
			return nil
		}))
		e, err := storage.Open("log", storage.Options{FS: fs, Identity: storage.Identity{Cluster: 1, Node: 1},
			Hung: func() { calls.Add(1) }, HungAfter: after})
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		term := uint64(0)
		write := func() {
			term++
			require.NoError(t, g.Append(storage.Write{HardState: &pb.HardState{Term: new(term)}}, nil))
		}
		for range 4 {
			shut.Store(true)
			write()
			time.Sleep(after * 3 / 4)
			shut.Store(false)
			time.Sleep(2 * time.Second)
		}
		time.Sleep(3 * after)
		require.Zero(t, calls.Load())

		shut.Store(true)
		write()
		time.Sleep(after * 9 / 10)
		require.Zero(t, calls.Load())
		time.Sleep(after)
		require.EqualValues(t, 1, calls.Load())
		time.Sleep(3 * after)
		require.EqualValues(t, 1, calls.Load())
		shut.Store(false)
		require.NoError(t, e.Close())
	})
}

// A disk that is full refuses what asks for room, again and again. One that was full, and no longer answers, hangs.
func TestHungIsCalledWhenAFullDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full, shut atomic.Bool
		var calls atomic.Int64
		const after = time.Minute
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			for op.Kind.ReadOrWrite() == errorfs.OpIsWrite && shut.Load() {
				time.Sleep(time.Second)
			}
			if op.Kind == errorfs.OpFileWriteAt && full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}))
		e, err := storage.Open("log", storage.Options{FS: fs, Identity: storage.Identity{Cluster: 1, Node: 1},
			Hung: func() { calls.Add(1) }, HungAfter: after})
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		full.Store(true)
		require.NoError(t, g.Append(storage.Write{HardState: &pb.HardState{Term: new(uint64(1))}}, nil))
		time.Sleep(5 * after)
		require.ErrorIs(t, g.Stalled(), storage.ErrFull)
		require.Zero(t, calls.Load())
		shut.Store(true)
		time.Sleep(2 * after)
		require.EqualValues(t, 1, calls.Load())
		shut.Store(false)
		full.Store(false)
		require.NoError(t, e.Close())
	})
}

// A write comes, and then Close, while the writer's goroutine has nothing but a mark to write: Close writes it, too.
func TestCloseWritesWhatCameDuringAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shut atomic.Bool
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			for op.Kind.ReadOrWrite() == errorfs.OpIsWrite && shut.Load() {
				time.Sleep(time.Second)
			}
			return nil
		}))
		e, err := storage.Open("log", storage.Options{FS: fs, Identity: storage.Identity{Cluster: 1, Node: 1}})
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		require.NoError(t, g.AppendWait(context.Background(), storage.Write{HardState: &pb.HardState{Term: new(uint64(1))}}))
		synctest.Wait()
		shut.Store(true)
		time.Sleep(100 * time.Millisecond) // the mark is under way
		results, closed := make(chan error, 1), make(chan error)
		require.NoError(t, g.Append(storage.Write{HardState: &pb.HardState{Term: new(uint64(2))}}, func(err error) { results <- err }))
		go func() { closed <- e.Close() }()
		synctest.Wait()
		shut.Store(false)
		require.NoError(t, <-closed)
		require.Len(t, results, 1)
		require.NoError(t, <-results)
	})
}
