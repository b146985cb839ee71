// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var (
	bare = flag.Bool("bare", false, "without the faults that report no error, as old seeds were named")
	skip = flag.Uint64("skip", 0, "acts that do not happen, by bit, in brief runs: for the one seed that runs")
)

// runKind is a kind of runs. again is the test, and the flag, that runs a seed again.
type runKind struct {
	again string
	opts  options
}

// kinds are the kinds of runs, also by the words of testdata/seeds.txt.
var kinds = map[string]runKind{
	"core":   {"'TestSim$' -seed", options{}},
	"early":  {"'TestEarly$' -early-seed", options{Early: true}},
	"coded":  {"'TestCoded$' -coded-seed", options{Coded: true}},
	"falls":  {"'TestCodedFalls$' -coded-seed", options{Coded: true, Falls: true}},
	"brief":  {"'TestCodedBrief$' -coded-seed", options{Coded: true, Brief: true}},
	"leased": {"'TestLeased$' -leased-seed", options{Leases: true}},
	"joints": {"'TestJoints$' -joint-seed", options{Joints: true}},
	"quick":  {"'TestJointsQuick$' -joint-seed", options{Joints: true, Quick: true}},
}

// suite runs seeds of the kind, as the flags say.
func (k runKind) suite() seeds.Suite[runResult] {
	k.opts.Bare, k.opts.Skip = k.opts.Bare || *bare, *skip
	s := seeds.Suite[runResult]{
		Again: "./rafttest -run " + k.again,
		Run: func(seed uint64, trace io.Writer) runResult {
			opts := k.opts
			opts.Trace = trace
			return run(seed, opts)
		},
	}
	if k.opts.Brief || k.opts.Joints {
		s.Shrink = func(r runResult) (runResult, string) { return shrink(r, k.opts) }
	}
	return s
}

// shrink leaves acts out of a failed run for as long as it fails.
func shrink(r runResult, opts options) (least runResult, flags string) {
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
	return r, fmt.Sprintf(" -skip %#x", skip)
}

// TestSameStory shows that a run is a function of its seed, also with members of upstream's library.
func TestSameStory(t *testing.T) {
	for name, k := range kinds {
		for seed := uint64(1); seed <= seeds.InShort(20, 8); seed++ {
			a, b := run(seed, k.opts), run(seed, k.opts)
			require.Equal(t, a, b, "kind %q, seed %d", name, seed)
			require.NotZero(t, a.Lines)
		}
	}
}
