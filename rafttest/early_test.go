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
	earlySeeds = flag.Uint64("early-seeds", 300, "how many seeds TestEarly runs")
	earlyFirst = flag.Uint64("early-first", 1, "the first of them")
	earlySeed  = flag.Uint64("early-seed", 0, "run this seed only; with -v its whole story is printed")
)

// TestEarly runs clusters whose cores hand out entries before their own hosts have stored them.
func TestEarly(t *testing.T) {
	var early earlyReach
	held := kinds["early"].suite().All(t, *earlyFirst, seeds.InShort(*earlySeeds, 100), *earlySeed, func(r runResult) { world.AddCounts(&early, r.Early) })
	t.Logf("%+v", early)
	if held >= 100 {
		require.Empty(t, world.Zeros(early), "never reached")
	}
}

// TestPlantedEarlyBugs shows that the simulator finds mistakes in early applies.
func TestPlantedEarlyBugs(t *testing.T) {
	for bug, within := range map[bug]uint64{earlyUnbounded: 20, earlyCheckpoint: 50} {
		t.Run(bug.String(), func(t *testing.T) {
			hunt(t, options{Bug: bug, Early: true}, 1, within)
		})
	}
}
