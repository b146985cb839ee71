// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"flag"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var (
	seedCount = flag.Uint64("seeds", 1000, "how many seeds TestNodes runs")
	firstSeed = flag.Uint64("first", 1, "the first of them")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v its whole story is printed")
)

// suiteOf runs seeds with these options; test is what runs one of them again.
func suiteOf(test string, opts options) seeds.Suite[result] {
	return seeds.Suite[result]{
		Again: "./rafttest/nodes -run '" + test + "$' -seed",
		Run: func(seed uint64, trace io.Writer) result {
			opts := opts
			opts.Trace = trace
			return run(seed, opts)
		},
	}
}

// runSeeds runs n seeds, and adds up what they reached. They are enough to come to all that is counted if they are as
// many as floor, and all held.
func runSeeds(t *testing.T, opts options, n, floor uint64) (total result, enough bool) {
	held := suiteOf(t.Name(), opts).All(t, *firstSeed, n, *oneSeed, func(r result) {
		world.AddCounts(&total.Reached, r.Reached)
		world.AddCounts(&total.Joints, r.Joints)
		world.AddCounts(&total.Gates, r.Gates)
	})
	t.Logf("\n%s", world.Table(total.Reached))
	return total, held >= floor
}

// TestNodes runs nodes through faults, and looks whether every invariant holds
// and all is well in the end.
func TestNodes(t *testing.T) {
	total, enough := runSeeds(t, options{}, seeds.InShort(*seedCount, 100), 1000)
	if enough {
		require.Empty(t, world.Zeros(total.Reached), "never reached")
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
	total, enough := runSeeds(t, options{Joints: true}, seeds.InShort(*jointSeeds, 50), 300)
	t.Logf("\n%s", world.Table(total.Joints))
	if enough {
		require.Empty(t, world.Zeros(total.Joints), "never reached")
		reached := total.Reached
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
// gateways; beside them there is TestGatewayIsServedWhileItsHomeIsNotWell.
func TestGatesBrief(t *testing.T) {
	runGates(t, options{Gates: true, Brief: true}, *briefGateSeeds, 1850)
}

func runGates(t *testing.T, opts options, n, floor uint64) {
	total, enough := runSeeds(t, opts, seeds.InShort(n, floor/3), floor)
	t.Logf("\n%s", world.Table(total.Gates))
	if enough {
		require.Empty(t, world.Zeros(total.Gates), "never reached")
		reached := total.Reached
		for i, of := range []uint64{
			reached.Crashes, reached.Kills, reached.TornWrites, reached.Partitions, reached.Isolations, reached.OneWay, reached.Pauses, reached.FullDisks, reached.ChangesDone,
			reached.Joins, reached.Transfers, reached.SnapshotsRestored, reached.Repeated, reached.RosterReads, reached.LeaseReads, reached.QuorumReads, reached.NamesJoined, reached.RelaysPassed,
		} {
			require.NotZero(t, of, i)
		}
	}
}
