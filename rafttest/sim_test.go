// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedCount = flag.Uint64("seeds", 2000, "how many seeds TestSim runs")
	firstSeed = flag.Uint64("first", 1, "the first of the seeds that TestSim runs")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v its whole story is printed")
)

// runSeeds runs seeds on all cores and hands each result to take, one at a
// time.
func runSeeds(first, n uint64, opts Options, take func(Result) (goOn bool)) {
	var (
		next atomic.Uint64
		stop atomic.Bool
		mu   sync.Mutex
		wg   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop.Load() {
				k := next.Add(1) - 1
				if k >= n {
					return
				}
				r := Run(first+k, opts)
				mu.Lock()
				if !stop.Load() && !take(r) {
					stop.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// report describes a failed run and how to see it again.
func report(r Result) string {
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run 'TestSim$' -seed %d -v\n%s", r.Seed, r.Err, r.Plan, r.Seed, r.Story)
}

// TestSim runs clusters through faults and looks whether every invariant holds,
// histories are linearizable, and clusters are live again afterwards.
func TestSim(t *testing.T) {
	if *oneSeed != 0 {
		opts := Options{}
		if testing.Verbose() {
			w := bufio.NewWriter(os.Stdout)
			defer func() { require.NoError(t, w.Flush()) }()
			opts.Trace = w
		}
		r := Run(*oneSeed, opts)
		t.Logf("plan: %s", r.Plan)
		require.NoError(t, r.Err)
		return
	}
	n := *seedCount
	if testing.Short() {
		n = min(n, 200)
	}
	var (
		reached Reach
		worst   Result
		failed  int
		begun   = time.Now()
	)
	runSeeds(*firstSeed, n, Options{}, func(r Result) bool {
		reached.Add(r.Reached)
		if r.Recovery > worst.Recovery {
			worst = r
		}
		if r.Err != nil {
			t.Error(report(r))
			failed++
		}
		return failed < 5
	})
	t.Logf("%d seeds in %v; slowest recovery %v (seed %d, bound %v)\n%s", n, time.Since(begun).Round(time.Millisecond),
		worst.Recovery, worst.Seed, finaleTime, reached)
	if n >= 200 {
		require.Empty(t, reached.Missing(), "never reached")
	}
}

// TestSeedsOfOld runs the seeds that once found something.
func TestSeedsOfOld(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "seeds.txt"))
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field, _, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if field == "" || field[0] == '#' {
			continue
		}
		seed, err := strconv.ParseUint(field, 10, 64)
		require.NoError(t, err)
		if r := Run(seed, Options{}); r.Err != nil {
			t.Error(report(r))
		}
	}
	require.NoError(t, lines.Err())
}

// TestSameStory shows that a run is a function of its seed.
func TestSameStory(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		a, b := Run(seed, Options{}), Run(seed, Options{})
		require.Equal(t, a, b, "seed %d", seed)
		require.NotZero(t, a.Lines)
	}
}
