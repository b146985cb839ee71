// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var (
	seedCount = flag.Uint64("seeds", 2000, "how many seeds TestSim runs")
	firstSeed = flag.Uint64("first", 1, "the first of the seeds that TestSim runs")
	onlyOn    = flag.String("process", "", "run only this kind of process: core or host; if empty, drawn by each seed")
	bare      = flag.Bool("bare", false, "without the faults that report no error, as old seeds were named")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v its whole story is printed")
)

var processes = map[string]processKind{"": processAny, "core": processCore, "host": processHost}

// runSeeds runs seeds, and hands each result to take until that returns false.
func runSeeds(first, n uint64, opts options, take func(runResult) (goOn bool)) {
	world.Seeds(first, n, func(seed uint64) runResult { return run(seed, opts) }, take)
}

// report describes a failed run and how to see it again.
func report(r runResult) string {
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run 'TestSim$' -process %v -seed %d -v\n%s", r.Seed, r.Err, r.Plan, r.Process, r.Seed, r.Story)
}

// suite is seeds to run in one way.
type suite struct {
	first, count, one uint64
	stop              int // after so many failures
	opts              options
	report            func(runResult) string
	each              func(runResult) // hears of each result, if set
}

// run runs the seeds, or tells the story of the one. It returns what they
// reached, and whether there were enough of them to reach all.
func (u suite) run(t *testing.T) (reached reach, coded codedReach, enough bool) {
	u.opts.Bare = u.opts.Bare || *bare
	if u.one != 0 {
		if testing.Verbose() {
			w := bufio.NewWriter(os.Stdout)
			defer func() { require.NoError(t, w.Flush()) }()
			u.opts.Trace = w
		}
		r := run(u.one, u.opts)
		t.Logf("plan: %s", r.Plan)
		require.NoError(t, r.Err)
		return r.Reached, r.Coded, false
	}
	var worst runResult
	var slow world.SlowSeeds
	failed, begun, stories := 0, time.Now(), uint64(0)
	runSeeds(u.first, u.count, u.opts, func(r runResult) bool {
		reached.Add(r.Reached)
		coded.Add(r.Coded)
		slow.Add(r.Reached)
		if u.each != nil {
			u.each(r)
		}
		stories ^= world.MixInt(world.MixInt(world.HashBegin, r.Seed), r.Hash)
		if r.Recovery > worst.Recovery {
			worst = r
		}
		if r.Err != nil {
			t.Error(u.report(r))
			failed++
		}
		return failed < u.stop
	})
	// Two versions that print the same here did the same in every run.
	t.Logf("%d seeds, stories %016x, in %v; slowest recovery %v (seed %d, bound %v)", u.count, stories, time.Since(begun).Round(time.Millisecond),
		worst.Recovery, worst.Seed, finaleTime)
	t.Log(slow)
	require.Empty(t, slow.Fewer(t.Name()), "too few seeds have these faults")
	return reached, coded, u.count >= 1000 && failed == 0
}

// inShort is fewer seeds where tests are to be short.
func inShort(n, most uint64) uint64 {
	if testing.Short() {
		return min(n, most)
	}
	return n
}

// TestSim runs clusters through faults and looks whether every invariant holds,
// histories are linearizable, and clusters are live again afterwards.
func TestSim(t *testing.T) {
	opts := options{Process: processes[*onlyOn]}
	reached, _, enough := suite{first: *firstSeed, count: inShort(*seedCount, 200), one: *oneSeed, stop: 5, opts: opts, report: report}.run(t)
	t.Logf("\n%s", reached)
	if enough && opts.Process == processAny {
		require.Empty(t, reached.Missing(), "never reached")
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
		require.GreaterOrEqual(t, len(fields), 3, "a seed, a process, and what was found: %q", line)
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		require.NoError(t, err)
		if u, ok := codedKinds[fields[1]]; ok {
			u.opts.Bare = true
			u.runOne(t, seed)
			continue
		}
		process, ok := processes[fields[1]]
		require.True(t, ok, "no process %q", fields[1])
		if r := run(seed, options{Process: process, Bare: true}); r.Err != nil {
			t.Error(report(r))
		}
	}
}

// TestSameStory shows that a run is a function of its seed.
func TestSameStory(t *testing.T) {
	last := uint64(60)
	if testing.Short() {
		last = 20
	}
	for seed := uint64(1); seed <= last; seed++ {
		a, b := run(seed, options{}), run(seed, options{})
		require.Equal(t, a, b, "seed %d", seed)
		require.NotZero(t, a.Lines)
	}
}
