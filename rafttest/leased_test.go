// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var (
	leasedCount = flag.Uint64("leased-seeds", 1500, "how many seeds TestLeased runs")
	leasedFirst = flag.Uint64("leased-first", 1, "the first of the seeds that TestLeased runs")
	leasedStop  = flag.Int("leased-stop", 5, "TestLeased ends when so many seeds have failed")
	leasedSeed  = flag.Uint64("leased-seed", 0, "run this seed with leases only; with -v its whole story is printed")
)

var leasedOptions = options{Leases: true, Process: processCore}

func reportLeased(r runResult) string {
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run 'TestLeased$' -leased-seed %d -v\n%s", r.Seed, r.Err, r.Plan, r.Seed, r.Story)
}

// TestLeased runs clusters with leases, on clocks with rates anywhere within the bound,
// through faults. Nobody answers a read without a write that anybody may have seen.
func TestLeased(t *testing.T) {
	u := suite{first: *leasedFirst, count: inShort(*leasedCount, 100), one: *leasedSeed, stop: *leasedStop, opts: leasedOptions, report: reportLeased}
	var reached leasedReach
	u.each = func(r runResult) { reached.Add(r.Leased) }
	u.run(t)
	t.Logf("\n%s", reached)
	if u.one == 0 && u.count >= 500 && !t.Failed() {
		require.Empty(t, reached.Missing(), "never reached")
	}
}

// TestClocksBeyondTheBoundAreSeen runs clocks that drift more than the settings say. If no
// read is stale then, the runs above show nothing. About 8 of 1,000 seeds have a stale read.
func TestClocksBeyondTheBoundAreSeen(t *testing.T) {
	const seeds = 1000
	found := uint64(0)
	opts := leasedOptions
	opts.Beyond = 40
	runSeeds(1, seeds, opts, func(r runResult) bool {
		var v *world.Violation
		if errors.As(r.Err, &v) && v.Invariant == fresh {
			found = r.Seed
			t.Log(r.Err)
		}
		return found == 0
	})
	require.NotZero(t, found, "%d seeds, and no read was stale", seeds)
}

// TestLeasedSameStory shows that a run with leases is a function of its seed.
func TestLeasedSameStory(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := run(seed, leasedOptions), run(seed, leasedOptions)
		require.Equal(t, a.Hash, b.Hash, "seed %d", seed)
		require.Equal(t, a.Leased, b.Leased, "seed %d", seed)
	}
}
