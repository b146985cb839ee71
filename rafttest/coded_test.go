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
	codedCount = flag.Uint64("coded-seeds", 2000, "how many seeds TestCoded runs")
	codedFirst = flag.Uint64("coded-first", 1, "the first of the seeds that TestCoded runs")
	codedStop  = flag.Int("coded-stop", 5, "TestCoded ends when so many seeds have failed")
	codedSeed  = flag.Uint64("coded-seed", 0, "run this seed with coding only; with -v its whole story is printed")
)

// codedKinds is the kinds of runs with coding, by the words of testdata/seeds.txt.
var codedKinds = map[string]suite{
	"coded": {opts: options{Coded: true, Process: processCore}, report: reportCoded},
	"falls": {opts: options{Coded: true, Falls: true, Process: processCore}, report: reportFalls},
	"brief": {opts: options{Coded: true, Brief: true, Process: processCore}, report: reportBrief},
}

// suiteOf returns seeds of a kind, as the flags say.
func suiteOf(kind string, count uint64) suite {
	u := codedKinds[kind]
	u.first, u.count, u.one, u.stop = *codedFirst, count, *codedSeed, *codedStop
	return u
}

// reportCoded describes a failed run with coding and how to see it again.
func reportCoded(r runResult) string { return reportCodedBy("TestCoded", r) }

// reportFalls is reportCoded for runs in which leaders fall.
func reportFalls(r runResult) string { return reportCodedBy("TestCodedFalls", r) }

func reportCodedBy(test string, r runResult) string {
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run '%s$' -coded-seed %d -v\n%s", r.Seed, r.Err, r.Plan, test, r.Seed, r.Story)
}

// TestCoded runs clusters that code through faults, and looks besides all else
// whether everything committed stays recoverable from what is on the disks.
func TestCoded(t *testing.T) {
	_, reached, enough := suiteOf("coded", inShort(*codedCount, 150)).run(t)
	t.Logf("\n%s", reached)
	if enough {
		require.Empty(t, reached.Missing(), "never reached")
	}
}

// TestCodedFalls runs as many clusters as half of that in which leaders fall while
// coded entries are under way: so that most of those who win have something to
// restore or to cut.
func TestCodedFalls(t *testing.T) {
	_, reached, enough := suiteOf("falls", inShort((*codedCount+1)/2, 75)).run(t)
	t.Logf("\n%s", reached)
	if enough {
		require.Greater(t, reached.Recoveries, *codedCount/2, "elections with something to restore")
		require.NotZero(t, reached.Cuts)
	}
}

// TestCodedSameStory shows that a run with coding is a function of its seed.
func TestCodedSameStory(t *testing.T) {
	last := uint64(40)
	if testing.Short() {
		last = 10
	}
	for seed := uint64(1); seed <= last; seed++ {
		opts := codedKinds[[...]string{"falls", "brief", "coded", "coded"}[seed%4]].opts
		a, b := run(seed, opts), run(seed, opts)
		require.Equal(t, a.Hash, b.Hash, "seed %d", seed)
		require.Equal(t, a.Coded, b.Coded, "seed %d", seed)
	}
}

// FuzzCoded runs seeds that the fuzzer makes up, for as long as it is let.
func FuzzCoded(f *testing.F) {
	for kind := range codedKinds {
		f.Add(uint64(1), kind)
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind string) {
		if u, ok := codedKinds[kind]; ok {
			u.runOne(t, seed)
		}
	})
}

// runOne runs one seed.
func (u suite) runOne(t *testing.T, seed uint64) {
	if r := run(seed, u.opts); r.Err != nil {
		t.Error(u.report(r))
	}
}
