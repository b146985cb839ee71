// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var (
	seedCount = flag.Uint64("seeds", 1000, "how many seeds TestNodes runs")
	firstSeed = flag.Uint64("first", 1, "the first of them")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v its whole story is printed")
)

// runSeeds runs seeds, and hands each result to take until that returns false.
func runSeeds(first, n uint64, opts options, take func(result) (goOn bool)) {
	world.Seeds(first, n, func(seed uint64) result { return run(seed, opts) }, take)
}

func report(r result) string {
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest/nodes -run 'TestNodes$' -seed %d -v\n%s", r.Seed, r.Err, r.Plan, r.Seed, r.Story)
}

// TestNodes runs nodes through faults, and looks whether every invariant holds
// and all is well in the end.
func TestNodes(t *testing.T) {
	if *oneSeed != 0 {
		opts := options{}
		if testing.Verbose() {
			out := bufio.NewWriter(os.Stdout)
			defer func() { require.NoError(t, out.Flush()) }()
			opts.Trace = out
		}
		r := run(*oneSeed, opts)
		t.Logf("plan: %s\n%s", r.Plan, r.Reached)
		require.NoError(t, r.Err)
		return
	}
	n := *seedCount
	if testing.Short() {
		n = min(n, 100)
	}
	var reached reach
	var slow world.SlowSeeds
	var worst result
	var events uint64
	failed, begun := 0, time.Now()
	runSeeds(*firstSeed, n, options{}, func(r result) bool {
		reached.Add(r.Reached)
		slow.Add(r.Reached)
		events += r.Events
		if r.Recovery > worst.Recovery {
			worst = r
		}
		if r.Err != nil {
			t.Error(report(r))
			failed++
		}
		return failed < 5
	})
	t.Logf("%d seeds, %d events in %v; slowest recovery %v (seed %d, bound %v)\n%s", n, events, time.Since(begun).Round(time.Millisecond),
		worst.Recovery, worst.Seed, finaleTime, reached)
	t.Log(slow)
	require.Empty(t, slow.Fewer(t.Name()), "too few seeds have these faults")
	if n >= 1000 && failed == 0 {
		require.Empty(t, world.Zeros(reached), "never reached")
	}
}

// TestSameStory shows that a run is a function of its seed.
func TestSameStory(t *testing.T) {
	for seed := uint64(1); seed <= 12; seed++ {
		opts := options{Gates: seed > 8}
		a, b := run(seed, opts), run(seed, opts)
		require.Equal(t, a, b, "seed %d", seed)
		require.NotZero(t, a.Lines)
	}
}

// TestSameStoryBesideOthers makes logs of another run all the time while a run goes on, one of whose nodes
// has upstream's library: this draws from the reader of crypto/rand, as new logs do.
func TestSameStoryBesideOthers(t *testing.T) {
	const seed = 144
	alone, other := run(seed, options{Joints: true}), newSim(1, options{Joints: true})
	require.NotZero(t, alone.Joints.PlainMembers)
	other.found(1)
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over.Load() {
			_, err := other.nodes[0].disk.openLog(vfs.NewMem())
			assert.NoError(t, err)
		}
	})
	for range 10 {
		assert.Equal(t, alone.Hash, run(seed, options{Joints: true}).Hash)
	}
	over.Store(true)
	wg.Wait()
}

var jointSeeds = flag.Uint64("joint-seeds", 300, "how many seeds TestJoints runs, from -first on")

// TestJoints runs nodes at which coding, leases and changes of the members meet.
func TestJoints(t *testing.T) {
	n := *jointSeeds
	if testing.Short() {
		n = min(n, 50)
	}
	if *oneSeed != 0 {
		n, *firstSeed = 1, *oneSeed
	}
	var reached reach
	var slow world.SlowSeeds
	var joints jointReach
	failed, begun := 0, time.Now()
	runSeeds(*firstSeed, n, options{Joints: true}, func(r result) bool {
		reached.Add(r.Reached)
		slow.Add(r.Reached)
		joints.Add(r.Joints)
		if r.Err != nil {
			t.Errorf("seed %d: %v\nplan: %s\nagain: go test ./rafttest/nodes -run 'TestJoints$' -seed %d -v\n%s", r.Seed, r.Err, r.Plan, r.Seed, r.Story)
			failed++
		}
		return failed < 5
	})
	t.Logf("%d seeds in %v\n%s\n%s\nmoments %v", n, time.Since(begun).Round(time.Millisecond), reached, world.Table(joints.jointCounts), joints.Moments)
	t.Log(slow)
	if n >= 300 && failed == 0 {
		require.Empty(t, world.Zeros(joints.jointCounts), "never reached")
		require.NotContains(t, joints.Moments[:], uint64(0), "moments never reached")
		for _, of := range []uint64{reached.SnapshotsRestored, reached.Transfers, reached.ChangesDone, reached.Raised, reached.RosterReads, reached.TornWrites} {
			require.NotZero(t, of)
		}
	}
}

// TestRemovedMemberWithUpstreamsLibraryHoldsNoUpgradedGroup: one of two members is removed, alone knows of it, has the longest log, and
// runs upstream's library, which does not tell the other. One of 3,000 seeds of TestJoints leads there.
func TestRemovedMemberWithUpstreamsLibraryHoldsNoUpgradedGroup(t *testing.T) {
	require.NoError(t, run(803055, options{Joints: true}).Err)
}

var (
	gateSeeds      = flag.Uint64("gate-seeds", 150, "how many seeds TestGates runs, from -first on")
	briefGateSeeds = flag.Uint64("brief-gate-seeds", 1850, "how many seeds TestGatesBrief runs, likewise")
)

// TestGates runs nodes and gateways, and clients at both.
func TestGates(t *testing.T) { runGates(t, options{Gates: true}, *gateSeeds, 150) }

// TestGatesBrief runs twelve times as many small clusters as TestGates for twice its processor time. Together the two are 2,000 seeds with
// gateways, all that there are: no other test of a simulator has any.
func TestGatesBrief(t *testing.T) {
	runGates(t, options{Gates: true, Brief: true}, *briefGateSeeds, 1850)
}

// runGates runs n seeds with gateways. So many as floor come to all that is counted.
func runGates(t *testing.T, opts options, n, floor uint64) {
	if testing.Short() {
		n = min(n, floor/3)
	}
	if *oneSeed != 0 {
		n, *firstSeed = 1, *oneSeed
		if testing.Verbose() {
			out := bufio.NewWriter(os.Stdout)
			defer func() { require.NoError(t, out.Flush()) }()
			opts.Trace = out
		}
	}
	var reached reach
	var slow world.SlowSeeds
	var gates gateReach
	failed, begun := 0, time.Now()
	runSeeds(*firstSeed, n, opts, func(r result) bool {
		reached.Add(r.Reached)
		slow.Add(r.Reached)
		gates.Add(r.Gates)
		if r.Err != nil {
			t.Errorf("seed %d: %v\nplan: %s\nagain: go test ./rafttest/nodes -run '%s$' -seed %d -v\n%s", r.Seed, r.Err, r.Plan, t.Name(), r.Seed, r.Story)
			failed++
		}
		return failed < 5
	})
	t.Logf("%d seeds in %v\n%s\n%s", n, time.Since(begun).Round(time.Millisecond), reached, world.Table(gates))
	t.Log(slow)
	require.Empty(t, slow.Fewer(t.Name()), "too few seeds have these faults")
	if n >= floor && failed == 0 {
		require.Empty(t, world.Zeros(gates), "never reached")
		for i, of := range []uint64{
			reached.Crashes, reached.Kills, reached.TornWrites, reached.Partitions, reached.Isolations, reached.OneWay, reached.Pauses, reached.FullDisks, reached.ChangesDone,
			reached.Joins, reached.Transfers, reached.SnapshotsRestored, reached.Repeated, reached.RosterReads, reached.LeaseReads, reached.QuorumReads, reached.NamesJoined, reached.RelaysPassed,
		} {
			require.NotZero(t, of, i)
		}
	}
}
