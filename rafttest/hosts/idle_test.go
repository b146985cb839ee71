// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// idleGroups is how many groups a node of a large host has.
const idleGroups = 10_000

// idleReach is one for all: what the simulator counts is no cost of a group.
var idleReach reach

// newIdle makes a member of a group in which nothing happens, and lets it hear
// of a leader.
func newIdle(t testing.TB, lib library) core {
	conf := &pb.ConfState{Voters: []uint64{1, 2, 3}}
	d := newDisk(conf)
	c, err := lib.New(&idleReach, raft.Config{
		ID: 1, ElectionTick: 1 << 20, HeartbeatTick: 1, Storage: d, Applied: 1, AsyncStorageWrites: true,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 64, PreVote: true, CheckQuorum: true, Logger: silent.Logger{},
	})
	require.NoError(t, err)
	lead, me, term, commit := uint64(2), uint64(1), uint64(1), uint64(1)
	require.NoError(t, c.Step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: &lead, To: &me, Term: &term, Commit: &commit}))
	for c.HasReady() {
		for _, m := range c.Ready().Messages {
			for _, r := range m.GetResponses() {
				if r.GetTo() == 1 {
					require.NoError(t, c.Step(r))
				}
			}
		}
	}
	return c
}

// idleCosts is what a node of many idle groups pays.
type idleCosts struct {
	goroutines     int
	bytesPerGroup  float64
	allocsPerRound float64 // of all groups
}

func measureIdle(t testing.TB, lib library) (costs idleCosts) {
	newIdle(t, lib) // tables that the process has once
	goroutines := runtime.NumGoroutine()
	groups := make([]core, idleGroups)
	before := heap()
	for i := range groups {
		groups[i] = newIdle(t, lib)
	}
	// To the nearest 8, because the process makes and frees some KB beside the groups.
	costs.bytesPerGroup = float64(((heap()-before)/idleGroups + 4) &^ 7)
	costs.goroutines = runtime.NumGoroutine() - goroutines
	costs.allocsPerRound = testing.AllocsPerRun(2, func() {
		for _, c := range groups {
			c.Tick()
			c.TickQuiesced()
			if c.HasReady() {
				t.Fatal("an idle group wants something")
			}
		}
	})
	runtime.KeepAlive(groups)
	return costs
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // pools are let go of in two rounds
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestIdleGroups is fact 10: a node has tens of thousands of groups, of which
// most do nothing. They cost memory and nothing else.
func TestIdleGroups(t *testing.T) {
	base := 0.0
	for _, lib := range libraries(cockroachLike) {
		got := measureIdle(t, lib)
		t.Logf("%-10s %6.0f bytes a group, %v allocations a round of %d groups", lib.Name, got.bytesPerGroup, got.allocsPerRound, idleGroups)
		require.LessOrEqual(t, got.goroutines, 0, "%s: goroutines", lib.Name) // one of an earlier test may end meanwhile
		require.LessOrEqual(t, got.allocsPerRound, 10.0, "%s: allocations in a round of ticks", lib.Name)
		switch {
		case lib.Name == "upstream":
			base = got.bytesPerGroup
		case lib.Coded:
			require.LessOrEqual(t, got.bytesPerGroup, base+codedIdleBytes, "%s: bytes a group", lib.Name)
		default:
			require.LessOrEqual(t, got.bytesPerGroup, base+64, "%s: bytes a group", lib.Name)
		}
	}
}

// codedIdleBytes is what a group may take more, in bytes, if its entries may be
// coded.
const codedIdleBytes = 1680

// TestIdleGroupsAreMeasured breaks the rule.
func TestIdleGroupsAreMeasured(t *testing.T) {
	lib := weft()
	make1 := lib.New
	stop := make(chan struct{})
	defer close(stop)
	lib.New = func(r *reach, cfg raft.Config) (core, error) {
		c, err := make1(r, cfg)
		go func() { <-stop }()
		return &wasteful{core: c}, err
	}
	got := measureIdle(t, lib)
	require.InDelta(t, idleGroups, got.goroutines, 10) // some of an earlier test may end meanwhile
	require.Greater(t, got.allocsPerRound, float64(idleGroups)/2)
}

// wasteful allocates in each tick.
type wasteful struct {
	core
	waste []byte
}

func (c *wasteful) Tick() {
	c.waste = make([]byte, 64)
	c.core.Tick()
}
