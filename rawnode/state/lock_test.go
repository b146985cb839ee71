// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

var errLeft = errors.New("left")

// Readers who wait for a writer leave when their contexts end, one by one, and the others get in.
func TestReadersLeaveTheLockWithTheirContexts(t *testing.T) {
	var l lock
	l.Lock()
	leaves, cancel := context.WithCancelCause(t.Context())
	var left, got sync.WaitGroup
	for range 10 {
		left.Go(func() {
			_, err := l.enter(leaves)
			if !errors.Is(err, errLeft) {
				t.Errorf("%v", err)
			}
		})
		got.Go(func() {
			b, err := l.enter(t.Context())
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			l.leave(b)
		})
	}
	cancel(errLeft)
	left.Wait()
	_, err := l.enter(leaves)
	require.ErrorIs(t, err, errLeft)
	l.Unlock()
	got.Wait()
	l.Lock()   // all have left
	l.Unlock() //nolint:staticcheck // nothing is to be done between
	b, err := l.enter(leaves)
	require.NoError(t, err, "the lock is free")
	l.leave(b)
}

// Readers and writers exclude each other, whatever leaves meanwhile.
func TestLockExcludes(t *testing.T) {
	var l lock
	value, shown := 0, make([]int, 8)
	var all sync.WaitGroup
	for i := range shown {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 2000 {
				if r.IntN(3) == 0 {
					l.Lock()
					value++
					l.Unlock()
					continue
				}
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(2) == 0 {
					go cancel()
				}
				if b, err := l.enter(ctx); err == nil {
					if value < shown[i] {
						t.Errorf("%d after %d", value, shown[i])
					}
					shown[i] = value
					l.leave(b)
				}
				cancel()
			}
		})
	}
	all.Wait()
	l.Lock()
}

// forker is a machine that reports its forks.
type forker struct{ forked chan struct{} }

func (f *forker) Apply([]byte) any      { return nil }
func (f *forker) Write(io.Writer) error { return nil }
func (f *forker) Read(io.Reader) error  { return nil }
func (f *forker) Fork() Machine         { close(f.forked); return f }

func TestForkIsAlone(t *testing.T) {
	forked := make(chan struct{})
	m, err := OpenMemory(func() *forker { return &forker{forked} }, Options{FS: vfs.NewMem(), Dir: "state"})
	require.NoError(t, err)
	_, err = m.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{nil}})
	require.NoError(t, err)
	sum, err := m.Digest()
	require.NoError(t, err)
	require.Nil(t, sum, "a machine without Digest is not forked for one")
	done := make(chan error, 1)
	m.View(func(*forker) {
		go func() { done <- m.Checkpoint() }()
		for m.mu.TryRLock() { // until the checkpoint waits for this reader
			m.mu.RUnlock()
			select {
			case <-forked:
				t.Error("Fork was called beside a function of View")
				return
			default:
				runtime.Gosched()
			}
		}
	})
	require.NoError(t, <-done)
	<-forked
	require.NoError(t, m.Close())
}

// slow is a machine, no Forker, that reports when it writes, and waits.
type slow struct {
	forker
	writing, end chan struct{}
	busy         atomic.Bool
}

func (s *slow) Write(io.Writer) error {
	defer s.busy.Store(false)
	s.busy.Store(true)
	s.writing <- struct{}{}
	<-s.end
	return nil
}

func (s *slow) Digest(io.Writer) error {
	if s.busy.Load() {
		return errors.New("Digest was called beside Write")
	}
	return nil
}

// Fork hides that of forker: another signature is no Forker.
func (s *slow) Fork() {}

func TestWriteAndDigestDoNotMeet(t *testing.T) {
	s := &slow{writing: make(chan struct{}), end: make(chan struct{})}
	m, err := OpenMemory(func() *slow { return s }, Options{FS: vfs.NewMem(), Dir: "state"})
	require.NoError(t, err)
	_, err = m.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{nil}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- m.Checkpoint() }()
	<-s.writing
	sum, err := m.Digest()
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	_, err = sum(ctx)
	require.ErrorIs(t, err, errLeft, "the sum waits for the checkpoint no longer than its context")

	sum, err = m.Digest()
	require.NoError(t, err)
	summed := make(chan error, 1)
	go func() { _, err := sum(t.Context()); summed <- err }()
	close(s.end)
	require.NoError(t, <-done)
	require.NoError(t, <-summed)
	require.NoError(t, m.Close())
}
