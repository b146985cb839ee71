// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	earlySeeds = flag.Uint64("early-seeds", 300, "how many seeds TestEarly runs")
	earlyFirst = flag.Uint64("early-first", 1, "the first of them")
	earlySeed  = flag.Uint64("early-seed", 0, "run this seed only; with -v its whole story is printed")
)

func reportEarly(r runResult) string {
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run 'TestEarly$' -early-seed %d -v\n%s", r.Seed, r.Err, r.Plan, r.Seed, r.Story)
}

// TestEarly runs clusters whose cores hand out entries before their own hosts have stored them.
func TestEarly(t *testing.T) {
	var early earlyReach
	n := inShort(*earlySeeds, 100)
	suite{first: *earlyFirst, count: n, one: *earlySeed, stop: 5, opts: options{Early: true, Process: processCore}, report: reportEarly,
		each: func(r runResult) { early.Add(r.Early) }}.run(t)
	t.Logf("%+v", early)
	if *earlySeed == 0 && n >= 100 {
		require.Empty(t, early.Missing(), "never reached")
	}
}

// TestPlantedEarlyBugs shows that the simulator finds mistakes in early applies.
func TestPlantedEarlyBugs(t *testing.T) {
	for bug, within := range map[bug]uint64{earlyUnbounded: 20, earlyCheckpoint: 50} {
		t.Run(bug.String(), func(t *testing.T) {
			found := hunt(options{Bug: bug, Early: true, Process: processCore}, 1, within)
			require.NotNil(t, found, "not found within %d seeds", within)
			t.Logf("seed %d: %s", found.Seed, invariantOf(*found))
		})
	}
}
