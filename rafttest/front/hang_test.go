// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// stuck is a machine whose methods hang while a test holds them.
type stuck struct {
	applies, writes *sync.Mutex
	applying        *atomic.Int64 // calls of Apply
}

func (s *stuck) Apply([]byte) any {
	s.applying.Add(1)
	defer s.applying.Add(-1)
	s.applies.Lock()
	defer s.applies.Unlock()
	return nil
}

func (s *stuck) Write(io.Writer) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	return nil
}

func (s *stuck) Read(io.Reader) error { return nil }

// Query hangs as Apply does.
func (s *stuck) Query([]byte) ([]byte, error) { s.Apply(nil); return nil, nil }

// startStuck starts a node with a machine that hangs while a mutex is held.
func startStuck(t *testing.T) (*weft.Node, *weft.Replicated[*stuck], *stuck) {
	sm := &stuck{&sync.Mutex{}, &sync.Mutex{}, &atomic.Int64{}}
	node, err := weft.Open(weft.Options{Cluster: testCluster, ID: 1, Dir: t.TempDir(), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond})
	require.NoError(t, err)
	group, err := weft.Replicate(node, 1, func() *stuck { return &stuck{sm.applies, sm.writes, sm.applying} })
	require.NoError(t, err)
	_, err = group.Propose(within(t), []byte("before"))
	require.NoError(t, err)
	return node, group, sm
}

// soon is a context that ends early.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// proposeToHang proposes until a command hangs in Apply: on a busy machine none may have come so far when its context ends.
func proposeToHang(t *testing.T, group *weft.Replicated[*stuck], sm *stuck) {
	t.Helper()
	eventually(t, func() bool {
		_, err := group.Propose(soon(t), []byte("hangs"))
		require.Error(t, err)
		return sm.applying.Load() > 0
	}, "a command hangs in Apply")
}

func TestViewAndWaitKeepTheirContextsWhileApplyHangs(t *testing.T) {
	node, group, sm := startStuck(t)
	sm.applies.Lock()
	proposeToHang(t, group, sm)
	view := func() error { return group.View(soon(t), func(*stuck) {}, weft.Local()) }
	for range 3 {
		err := view()
		require.ErrorIs(t, err, weft.ErrRefused)
		require.ErrorIs(t, err, weft.ErrTimeout)
	}
	err := group.Wait(soon(t), func(*stuck) bool { return true }, weft.Local())
	require.ErrorIs(t, err, weft.ErrRefused)
	require.ErrorIs(t, err, weft.ErrTimeout)
	sm.applies.Unlock()
	require.NoError(t, group.View(within(t), func(*stuck) {}))
	sm.applies.Lock()
	proposeToHang(t, group, sm)
	require.ErrorIs(t, node.Close(soon(t)), weft.ErrNotEnded)
	sm.applies.Unlock()
	require.NoError(t, node.Close(within(t)))
}

func TestCloseNamesAQueryThatHangs(t *testing.T) {
	node, group, sm := startStuck(t)
	sm.applies.Lock()
	asked := make(chan error, 1)
	go func() {
		_, err := group.Query(context.Background(), nil)
		asked <- err
	}()
	eventually(t, func() bool { return sm.applying.Load() > 0 }, "a query hangs")
	err := node.Close(soon(t))
	require.ErrorIs(t, err, weft.ErrNotEnded)
	require.ErrorContains(t, err, "Query")
	sm.applies.Unlock()
	require.NoError(t, <-asked)
	require.NoError(t, node.Close(within(t)))
}

func TestCloseAndSnapshotKeepTheirContextsWhileACheckpointHangs(t *testing.T) {
	node, group, sm := startStuck(t)
	sm.writes.Lock()
	large := make([]byte, 1<<20) // several make a checkpoint due
	for range 16 {
		_, err := group.Propose(within(t), large)
		require.NoError(t, err)
	}
	var err error
	eventually(t, func() bool { // the read before it may take longer
		_, err = group.Snapshot(soon(t), io.Discard)
		require.Error(t, err)
		return errors.Is(err, weft.ErrNotEnded)
	}, "a snapshot hangs in Write")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for range 2 {
		err := node.Close(soon(t))
		require.ErrorIs(t, err, weft.ErrNotEnded)
	}
	sm.writes.Unlock()
	require.NoError(t, node.Close(within(t)))
	require.NoError(t, node.Close(within(t)))
}
