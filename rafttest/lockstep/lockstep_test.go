// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"bufio"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	bare       = flag.Bool("bare", false, "with -seed: leave out what schedules did not have at first, as for seeds that are listed as bare")
	oneSeed    = flag.Uint64("seed", 0, "run the schedule of this seed only")
	fixedSeeds = flag.Uint64("seeds", usualSeeds, "how many fixed seeds TestLockstep runs: 1 and up")
	freshSeeds = flag.Uint64("fresh", 80, "how many seeds TestLockstep draws anew")
	firstOnly  = flag.Bool("first", false, "stop at the first difference, and do not check what was covered")
	steps      = flag.Int("steps", 3000, "steps of a schedule")
)

const (
	usualSeeds = 720
	// leastCalls is how many calls the usual run must have compared.
	leastCalls = 1_000_000
)

// TestLockstep feeds both libraries the same random schedules: schedules of fixed seeds, of listed
// seeds that once found a difference, and of new seeds, which the report of a difference names. See
// README.md.
func TestLockstep(t *testing.T) {
	tally, calls, start := tally{}, uint64(0), time.Now()
	failed := 0
	run := func(seed uint64, bare bool) {
		if failed >= 5 || failed > 0 && *firstOnly {
			return // enough to look at
		}
		r := run(seed, options{Bare: bare, Steps: *steps, Tally: tally})
		calls += r.Calls
		if r.Difference != nil {
			failed++
			t.Errorf("reproduce with: go test -run TestLockstep -seed %d -steps %d -bare=%t\n%v", seed, *steps, bare, r.Difference)
		}
	}
	if *oneSeed != 0 {
		run(*oneSeed, *bare)
		t.Logf("seed %d: %d calls%v", *oneSeed, calls, tally)
		return
	}
	fixed, fresh := *fixedSeeds, *freshSeeds
	if testing.Short() {
		fixed, fresh = fixed/8, fresh/8
	}
	listed := listedSeeds(t)
	for _, l := range listed {
		run(l.seed, l.bare)
	}
	for seed := uint64(1); seed <= fixed; seed++ {
		run(seed, false)
	}
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+fresh; seed++ {
		run(seed, false)
	}
	t.Logf("%d schedules (%d listed, %d fixed, %d fresh from seed %d), %d calls compared in %v",
		uint64(len(listed))+fixed+fresh, len(listed), fixed, fresh, first, calls, time.Since(start).Round(time.Millisecond))
	if testing.Short() || failed > 0 || *firstOnly {
		return
	}
	t.Logf("covered:%v", tally)
	if missing := tally.Missing(required()); len(missing) > 0 {
		t.Errorf("these are no longer covered: %s", strings.Join(missing, "; "))
	}
	if calls < leastCalls && fixed >= usualSeeds {
		t.Errorf("%d calls were compared, want at least %d: raise usualSeeds", calls, leastCalls)
	}
}

// listed is a seed that once found a difference, in a schedule that was bare or not.
type listed struct {
	seed uint64
	bare bool
}

// listedSeeds reads the list.
func listedSeeds(t *testing.T) (seeds []listed) {
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds.txt: %v", err)
		}
		seeds = append(seeds, listed{seed, len(fields) > 1 && fields[1] == "bare"})
	}
	return seeds
}

// TestReproducible shows that a schedule depends only on its seed.
func TestReproducible(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := tally{}, tally{}
		ra := run(seed, options{Steps: 1000, Tally: a})
		rb := run(seed, options{Steps: 1000, Tally: b})
		if ra.Calls != rb.Calls || a.String() != b.String() {
			t.Errorf("seed %d: %d calls, then %d; tallies equal: %t", seed, ra.Calls, rb.Calls, a.String() == b.String())
		}
	}
}
