// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// A leader whose disk is full reports ErrStalled, refuses commands, and hands over leadership. The
// group goes on meanwhile, and the node catches up after room is made.
func TestFullDisk(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		var full [4]atomic.Bool // by node
		hosts := fullDiskGroup(t, core, &full, ordinary)
		_, err := hosts[1].Read(within(20 * time.Second))
		require.NoError(t, err)
		must(t, hosts[1], "before")
		old := hosts[1].Status().Lead
		full[old].Store(true)

		// The engine notices the full disk at its next write; the other nodes may acknowledge the
		// command, or the outcome stays unknown.
		_, _ = hosts[old].Propose(within(2*time.Second), []byte("notice"))
		other := hosts[old%3+1]
		require.Eventually(t, func() bool {
			lead := other.Status().Lead
			return lead != 0 && lead != old
		}, time.Minute, hostTick, "leadership moves")
		must(t, other, "while it is full")
		require.Eventually(t, func() bool { return hosts[old].Status().Stalled != nil }, time.Minute, hostTick)
		require.ErrorIs(t, hosts[old].Status().Stalled, storage.ErrFull)
		_, err = hosts[old].Propose(within(20*time.Second), []byte("refused"))
		require.ErrorIs(t, err, rawnode.ErrRefused)
		require.ErrorIs(t, err, rawnode.ErrStalled)
		require.ErrorIs(t, err, storage.ErrFull)
		require.NoError(t, hosts[old].Err(), "the host has not failed")

		full[old].Store(false)
		require.Eventually(t, func() bool { return hosts[old].Status().Stalled == nil }, time.Minute, hostTick)
		must(t, hosts[old], "after")
	})
}

// The same for a disk that holds only the state: the log takes all entries, and Apply waits.
func TestFullDiskOfState(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		var full [4]atomic.Bool
		var states [4]*fullState
		hosts := fullDiskGroup(t, core, &full, func(id uint64) rawnode.StateMachine {
			states[id] = &fullState{counts: newCounts(10)}
			return states[id]
		})
		must(t, hosts[1], "before")
		old := hosts[1].Status().Lead
		states[old].fill(true)
		t.Cleanup(func() { states[old].fill(false) })
		require.Eventually(t, func() bool { return hosts[old].Status().Stalled != nil }, time.Minute, hostTick)

		start := time.Now()
		_, err := hosts[old].Propose(within(time.Minute), []byte("refused"))
		require.ErrorIs(t, err, rawnode.ErrRefused)
		require.ErrorIs(t, err, rawnode.ErrStalled)
		require.ErrorIs(t, err, errStateFull)
		require.Less(t, time.Since(start), 30*time.Second, "the call is refused at once")
		other := hosts[old%3+1]
		require.Eventually(t, func() bool {
			lead := other.Status().Lead
			return lead != 0 && lead != old
		}, time.Minute, hostTick, "leadership moves")
		must(t, other, "while it is full")

		states[old].fill(false)
		require.Eventually(t, func() bool { return hosts[old].Status().Stalled == nil }, time.Minute, hostTick)
		must(t, hosts[old], "after")
		require.Equal(t, 1, states[old].times("while it is full"))
		require.Zero(t, states[old].times("refused"))
	})
}

var errStateFull = errors.New("no room for the state")

// fullState is a state machine whose disk can be full.
type fullState struct {
	*counts
	mu   sync.Mutex
	room sync.Cond
	full bool
}

func (s *fullState) fill(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.L = &s.mu
	s.full = full
	s.room.Broadcast()
}

// Stalled implements the optional method of a state machine.
func (s *fullState) Stalled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return errStateFull
	}
	return nil
}

// Apply waits while there is no room.
func (s *fullState) Apply(b rawnode.Batch) ([]any, error) {
	s.mu.Lock()
	for s.full {
		s.room.Wait()
	}
	s.mu.Unlock()
	return s.counts.Apply(b)
}

// ordinary makes states that always have room.
func ordinary(uint64) rawnode.StateMachine { return newCounts(10) }

// A host whose disk is full can be stopped.
func TestStopWithFullDisk(t *testing.T) {
	var full [4]atomic.Bool
	hosts := fullDiskGroup(t, rawnode.Weft, &full, ordinary)
	must(t, hosts[1], "before")
	for id := range full {
		full[id].Store(true)
	}
	_, err := hosts[1].Propose(within(time.Second), make([]byte, 1<<20))
	require.Error(t, err)
	start := time.Now()
	_ = hosts[1].Stop(within(time.Second)) // the error may say that a call was cut short
	require.Less(t, time.Since(start), 30*time.Second)
}

// fullDiskGroup starts hosts 1 to 3 on disks that can be full.
func fullDiskGroup(t *testing.T, core replica.NewCore, full *[4]atomic.Bool, state func(id uint64) rawnode.StateMachine) map[uint64]*rawnode.Host {
	addresses, listeners := map[uint64]string{}, map[uint64]net.Listener{}
	peers := []uint64{1, 2, 3}
	for _, id := range peers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners[id], addresses[id] = l, l.Addr().String()
	}
	hosts := map[uint64]*rawnode.Host{}
	for _, id := range peers {
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate, errorfs.OpReuseForWrite:
				if full[id].Load() {
					return syscall.ENOSPC
				}
			}
			return nil
		}))
		engine, err := storage.Open("log", storage.Options{FS: fs, Identity: storage.Identity{Cluster: 9, Node: id}, QueueBytes: 64 << 10})
		require.NoError(t, err)
		log, err := engine.Group(1)
		require.NoError(t, err)
		tr, err := transport.New(transport.Config{Cluster: 9, Node: id, Listener: listeners[id], Peers: addresses})
		require.NoError(t, err)
		h, err := rawnode.New(rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Core: core, Log: log, Peers: peers, ElectionTick: 20},
			StateMachine: state(id), Transport: tr, TickInterval: hostTick,
		})
		require.NoError(t, err)
		hosts[id] = h
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = h.Stop(ctx) // cut short
			_ = tr.Close()
			_ = engine.Close() // its disk may be full
		})
	}
	return hosts
}
