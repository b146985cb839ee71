// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var (
	leasedCount = flag.Uint64("leased-seeds", 1500, "how many seeds TestLeased runs")
	leasedFirst = flag.Uint64("leased-first", 1, "the first of the seeds that TestLeased runs")
	leasedSeed  = flag.Uint64("leased-seed", 0, "run this seed with leases only; with -v its whole story is printed")
)

// TestLeased runs clusters with leases, on clocks with rates anywhere within the bound,
// through faults. Nobody answers a read without a write that anybody may have seen.
func TestLeased(t *testing.T) {
	var reached leasedReach
	held := kinds["leased"].suite().All(t, *leasedFirst, seeds.InShort(*leasedCount, 100), *leasedSeed, func(r runResult) { world.AddCounts(&reached, r.Leased) })
	t.Logf("\n%s", world.Table(reached))
	if held >= 500 {
		require.Empty(t, world.Zeros(reached), "never reached")
	}
}

// TestClocksBeyondTheBoundAreSeen runs clocks that drift more than the settings say. If no
// read is stale then, the runs above show nothing. About 8 of 1,000 seeds have a stale read.
func TestClocksBeyondTheBoundAreSeen(t *testing.T) {
	opts := kinds["leased"].opts
	opts.Beyond = 40
	seeds.Hunt(t, 1, 1000, func(seed uint64) runResult {
		r := run(seed, opts)
		if seeds.Invariant(r.Err) != fresh {
			r.Err = nil
		}
		return r
	})
}
