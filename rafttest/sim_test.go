// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var (
	seedCount = flag.Uint64("seeds", 2000, "how many seeds TestSim runs")
	firstSeed = flag.Uint64("first", 1, "the first of the seeds that TestSim runs")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v its whole story is printed")
)

// TestSim runs clusters through faults and looks whether every invariant holds,
// histories are linearizable, and clusters are live again afterwards.
func TestSim(t *testing.T) {
	var reached reach
	held := kinds["core"].suite().All(t, *firstSeed, seeds.InShort(*seedCount, 200), *oneSeed, func(r runResult) { world.AddCounts(&reached, r.Reached) })
	t.Logf("\n%s", world.Table(reached))
	if held >= 1000 {
		require.Empty(t, world.Zeros(reached, "Stalemates"), "never reached") // nobody needs stalemates
	}
}

// TestSeedsOfOld runs the seeds that once found something.
func TestSeedsOfOld(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "seeds.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		require.GreaterOrEqual(t, len(fields), 3, "a seed, a kind of run, and what was found: %q", line)
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		require.NoError(t, err)
		k, ok := kinds[fields[1]]
		require.True(t, ok, "no kind %q", fields[1])
		k.opts.Bare = true
		k.suite().Check(t, seed)
	}
}

// TestLeadsATermOnce crashes nodes that lead a term before it is on their disk.
// If they could, they would be elected for the same term again, with the votes
// they got the first time, and write other entries of the same index and term.
func TestLeadsATermOnce(t *testing.T) {
	k := kinds["core"]
	k.opts.Depose = true
	k.suite().All(t, 1, 400, 0, func(runResult) {})
}
