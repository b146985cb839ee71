// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// gate is a disk that can hang: what writes or syncs waits, without an error, until the gate opens. A
// sync takes a time.
type gate struct {
	mu     sync.Mutex
	opened sync.Cond
	shut   bool
	syncs  time.Duration
}

func newGate() *gate {
	g := &gate{}
	g.opened.L = &g.mu
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.opened.Broadcast()
}

// MaybeError waits, and is no error.
func (g *gate) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileWrite, errorfs.OpFileWriteAt:
		g.pass()
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		time.Sleep(g.pass())
	}
	return nil
}

// pass waits until the gate is open, and returns how long a sync takes.
func (g *gate) pass() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut {
		g.opened.Wait()
	}
	return g.syncs
}

// slow lets each sync take a time.
func (g *gate) slow(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.syncs = took
}

func (g *gate) String() string { return "gate" }

// withGates runs three hosts in virtual time whose disks have gates, and gives f the leader and
// another node.
func withGates(t *testing.T, adjust func(*rawnode.Config), f func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, old, other uint64)) {
	gates, engines := map[uint64]*gate{}, map[uint64]*storage.Engine{}
	inBubble(t, 3, func(cfg *rawnode.Config) {
		id := cfg.Replica.ID
		gates[id] = newGate()
		engine := gatedLog(t, cfg, vfs.NewMem(), gates[id])
		engines[id] = engine
		var err error
		cfg.Replica.Log, err = engine.Group(1)
		require.NoError(t, err)
		adjust(cfg)
	}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
		for id, h := range hosts {
			defer func() {
				gates[id].set(false)
				_ = h.Stop(within(0))
				require.NoError(t, engines[id].Close())
			}()
		}
		must(t, hosts[1], "before")
		for _, h := range hosts {
			for s := h.Status().Leases; s != nil && !s.Stable; s = h.Status().Leases {
				time.Sleep(bubbleTick)
			}
		}
		old := hosts[1].Status().Lead
		f(t, hosts, gates, old, old%3+1)
	})
}

// gatedLog opens the log of a host behind a gate.
func gatedLog(t *testing.T, cfg *rawnode.Config, fs vfs.FS, g *gate) *storage.Engine {
	engine, err := storage.Open("gated", storage.Options{FS: errorfs.Wrap(fs, g), Identity: storage.Identity{Cluster: 9, Node: cfg.Replica.ID}})
	require.NoError(t, err)
	return engine
}

// gated are the kinds of groups whose disks hang.
var gated = map[string]func(*rawnode.Config){
	"plain":    func(*rawnode.Config) {},
	"upstream": func(cfg *rawnode.Config) { cfg.Replica.Core = rawnode.Upstream },
	"coded":    func(cfg *rawnode.Config) { cfg.Replica.Coding = &raft.Coding{Threshold: 1} },
	"leases": func(cfg *rawnode.Config) {
		cfg.Replica.Clock = bubbleClock{time.Now().Add(-time.Hour)}
		cfg.Replica.Leases = &raft.Leases{Lease: 5 * bubbleTick, Fail: 4 * bubbleTick, Wanted: []leases.Want{{Nodes: []leases.NodeID{1, 2, 3}}}}
	},
}

// eachGated runs f with each kind of group.
func eachGated(t *testing.T, f func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, old, other uint64)) {
	for name, adjust := range gated {
		t.Run(name, func(t *testing.T) {
			withGates(t, func(cfg *rawnode.Config) {
				cfg.Replica.MaxUncommittedBytes, cfg.Replica.MaxBatchBytes = 16<<10, 16<<10
				adjust(cfg)
			}, f)
		})
	}
}

// electionTimeout is that of hosts in bubbles.
const electionTimeout = 10 * bubbleTick

// longestGap writes and reads at a host for 30 election timeouts, and returns the longest time between
// two writes.
func longestGap(t *testing.T, h *rawnode.Host) (longest time.Duration) {
	began, last := time.Now(), time.Now()
	for i := 0; time.Since(began) < 30*electionTimeout; i++ {
		must(t, h, fmt.Sprintf("%d %s", i, make([]byte, 1000)))
		longest, last = max(longest, time.Since(last)), time.Now()
		time.Sleep(bubbleTick / 2)
		_, err := h.Read(within(electionTimeout))
		require.NoError(t, err)
	}
	return longest
}

// isLate checks that a host whose disk hangs gives the reason, everywhere.
func isLate(t *testing.T, h *rawnode.Host) {
	require.ErrorIs(t, h.Status().Stalled, storage.ErrLate)
	_, err := h.Propose(within(electionTimeout), []byte("refused"))
	require.ErrorIs(t, err, rawnode.ErrRefused)
	require.ErrorIs(t, err, rawnode.ErrStalled)
	require.ErrorIs(t, err, storage.ErrLate)
	_, err = h.Read(within(electionTimeout))
	require.ErrorIs(t, err, storage.ErrLate, "the reason, not only a timeout")
}

// isBack checks that a host whose disk goes on is a member like others, without an election.
func isBack(t *testing.T, h *rawnode.Host) {
	term := h.Status().Term
	time.Sleep(electionTimeout)
	require.NoError(t, h.Status().Stalled)
	must(t, h, "after")
	_, err := h.Read(within(electionTimeout))
	require.NoError(t, err)
	require.Equal(t, term, h.Status().Term)
}

// The disk of the leader hangs, without an error. No client of another node waits for longer than two
// election timeouts, however much is written; the node itself says why it takes nothing; and after
// the disk goes on, the node is a member like others.
func TestLeaderWhoseDiskHangsDoesNotHoldItsGroup(t *testing.T) {
	eachGated(t, func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, old, other uint64) {
		gates[old].set(true)
		require.LessOrEqual(t, longestGap(t, hosts[other]), 2*electionTimeout)
		require.NotEqual(t, old, hosts[other].Status().Lead)
		isLate(t, hosts[old])
		gates[old].set(false)
		isBack(t, hosts[old])
	})
}

// The disk of a follower hangs, and the others do not wait for the follower.
func TestFollowerWhoseDiskHangsDoesNotHoldItsGroup(t *testing.T) {
	eachGated(t, func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, lead, follower uint64) {
		gates[follower].set(true)
		require.LessOrEqual(t, longestGap(t, hosts[lead]), electionTimeout)
		require.Equal(t, lead, hosts[lead].Status().Lead)
		isLate(t, hosts[follower])
		gates[follower].set(false)
		isBack(t, hosts[follower])
	})
}
