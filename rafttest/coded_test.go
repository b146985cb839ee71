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
	codedCount = flag.Uint64("coded-seeds", 2000, "how many seeds TestCoded runs")
	codedFirst = flag.Uint64("coded-first", 1, "the first of the seeds that TestCoded runs")
	codedSeed  = flag.Uint64("coded-seed", 0, "run this seed with coding only; with -v its whole story is printed")
)

// runCoded runs seeds with coding. They are enough to reach all if there are a thousand, and none failed.
func runCoded(t *testing.T, kind string, count uint64) (reached codedReach, enough bool) {
	held := kinds[kind].suite().All(t, *codedFirst, count, *codedSeed, func(r runResult) { world.AddCounts(&reached, r.Coded) })
	t.Logf("\n%s", world.Table(reached))
	return reached, held >= 1000
}

// TestCoded runs clusters that code through faults, and looks besides all else
// whether everything committed stays recoverable from what is on the disks.
func TestCoded(t *testing.T) {
	reached, enough := runCoded(t, "coded", seeds.InShort(*codedCount, 150))
	if enough {
		require.Empty(t, world.Zeros(reached, // but for what is sure to come in brief runs only
			"Falls", "Held", "OfCommitted", "Hurried", "InARow", "InARowApplied", "LateApplies", "HurriedDrops", "ChangesRefused",
			"Ambushes", "Starved", "Blocked", "Echoes", "Breaks", "SlowSnapshots", "Stranded"), "never reached")
	}
}

// TestCodedFalls runs as many clusters as half of that in which leaders fall while
// coded entries are under way: so that most of those who win have something to
// restore or to cut.
func TestCodedFalls(t *testing.T) {
	reached, enough := runCoded(t, "falls", seeds.InShort((*codedCount+1)/2, 75))
	if enough {
		require.Greater(t, reached.Recoveries, *codedCount/2, "elections with something to restore")
		require.NotZero(t, reached.Cuts)
	}
}

// perCoded is how many brief runs there are for each of TestCoded.
const perCoded = 6

// TestCodedBrief runs six times as many small clusters as TestCoded for a fraction
// of a second each.
func TestCodedBrief(t *testing.T) {
	reached, enough := runCoded(t, "brief", seeds.InShort(perCoded*(*codedCount), 500))
	if enough {
		require.Greater(t, reached.OfCommitted, *codedCount/4, "recoveries of what is committed")
		require.Empty(t, world.Zeros(reached), "never reached")
	}
}

// FuzzCoded runs seeds that the fuzzer makes up, for as long as it is let.
func FuzzCoded(f *testing.F) {
	for kind, k := range kinds {
		if k.opts.Coded {
			f.Add(uint64(1), kind)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind string) {
		if k := kinds[kind]; k.opts.Coded {
			k.suite().Check(t, seed)
		}
	})
}
