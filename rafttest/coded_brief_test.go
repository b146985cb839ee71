// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var codedSkip = flag.Uint64("coded-skip", 0, "acts that do not happen, by bit, in the one seed that TestCodedBrief runs")

// perCoded is how many brief runs there are for each of TestCoded.
const perCoded = 6

// TestCodedBrief runs six times as many small clusters as TestCoded for a fraction
// of a second each.
func TestCodedBrief(t *testing.T) {
	u := suiteOf("brief", inShort(perCoded*(*codedCount), 500))
	u.opts.Skip = *codedSkip
	_, reached, enough := u.run(t)
	t.Logf("\n%s", reached)
	if enough {
		require.NotZero(t, reached.Falls)
		require.NotZero(t, reached.Held)
		for _, n := range []uint64{reached.Ambushes, reached.Starved, reached.Blocked, reached.Echoes, reached.Breaks, reached.SlowSnapshots, reached.Stranded} {
			require.NotZero(t, n, "ambushes and breaks")
		}
		for _, n := range []uint64{reached.Hurried, reached.InARow, reached.InARowApplied, reached.LateApplies, reached.HurriedDrops, reached.ChangesRefused} {
			require.NotZero(t, n, "hosts in a hurry")
		}
		require.Greater(t, reached.OfCommitted, *codedCount/4, "recoveries of what is committed")
		require.Empty(t, reached.Missing(), "never reached")
	}
}

// reportBrief describes a failed brief run without the acts that do not matter.
func reportBrief(r runResult) string {
	r, skip := shrink(r, options{Coded: true, Brief: true, Process: processCore})
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run 'TestCodedBrief$' -coded-seed %d -coded-skip %#x -v\n%s", r.Seed, r.Err, r.Plan, r.Seed, skip, r.Story)
}

// shrink leaves acts out of a failed run for as long as it fails.
func shrink(r runResult, opts options) (runResult, uint64) {
	skip := uint64(0)
	for again := true; again; {
		again = false
		for i := mostActs + mostAmbushes; i >= 0; i-- {
			try := skip | 1<<i
			if try == skip {
				continue
			}
			opts.Skip = try
			got := run(r.Seed, opts)
			if got.Err != nil {
				again = again || got.Plan != r.Plan
				r, skip = got, try
			}
		}
	}
	return r, skip
}
