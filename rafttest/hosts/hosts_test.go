// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bufio"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var (
	seedCount = flag.Uint64("seeds", 0, "how many seeds to run for each library and host; 0: what each test finds right")
	firstSeed = flag.Uint64("first", 1, "the first of them")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v it tells its story")
)

// libraries are what the suite runs in a kind of host.
func libraries(kind kind) []library { return []library{upstreamLibrary(), weft(), coded(kind)} }

var kinds = []kind{etcdLike, cockroachLike}

// runSeeds runs n seeds, or those of the flags.
func runSeeds(t *testing.T, opts options, n uint64) reach {
	reached, _ := runLeased(t, opts, n)
	return reached
}

// runLeased runs seeds as runSeeds does, and also returns the events of leases.
func runLeased(t *testing.T, opts options, n uint64) (reached reach, leased leaseReach) {
	first := *firstSeed
	if *seedCount != 0 {
		n = *seedCount
	}
	if testing.Short() {
		n = min(n, 10)
	}
	if *oneSeed != 0 {
		first, n = *oneSeed, 1
		if testing.Verbose() {
			out := bufio.NewWriter(os.Stdout)
			defer func() { require.NoError(t, out.Flush()) }()
			opts.Trace = out
		}
	}
	var slow world.SlowSeeds
	for seed := first; seed < first+n; seed++ {
		r := run(seed, opts)
		if r.Err != nil {
			t.Errorf("%v\nagain: go test ./rafttest/hosts -run '%s' -seed %d -v\n%s", r.Err, t.Name(), seed, r.Story)
		}
		reached.Add(r.Reached)
		leased.Add(r.Leases)
		slow.Add(r.Reached)
	}
	t.Log(slow)
	return reached, leased
}

// TestHosts runs both hosts with each library through faults, and looks whether
// everything happened that can.
func TestHosts(t *testing.T) {
	var all reach
	full := *oneSeed == 0 && !testing.Short() && (*seedCount == 0 || *seedCount >= 40)
	for _, kind := range kinds {
		for _, lib := range libraries(kind) {
			ran := false
			t.Run(kind.String()+"/"+lib.Name, func(t *testing.T) {
				ran = true
				begun := time.Now()
				reached := runSeeds(t, options{Kind: kind, Library: lib}, 40)
				t.Logf("%v\n%v", time.Since(begun).Round(time.Millisecond), reached)
				all.Add(reached)
			})
			full = full && ran // or -run chose some of them
		}
	}
	if full {
		all.LibraryChanges++                                              // that is TestRollingUpgrade's
		all.ChangesPending, all.ChangesHeld, all.ChangesRefused = 1, 1, 1 // those are TestChangesAtOnce's
		all.ChangesReportedFirst = 1
		require.Empty(t, world.Zeros(all), "never reached")
	}
}

// leasedLibraries are what the suite runs with roster leases in a kind of host.
func leasedLibraries(kind kind) (libs []library) {
	for _, lib := range []library{weft(), coded(kind)} {
		libs = append(libs, leased(lib, kind, false, 0), leased(lib, kind, true, 0))
	}
	return libs
}

// TestHostsWithLeases runs both hosts with roster leases, coding off and on, early accept notes
// off and on, on clocks with rates anywhere within the bound. No answer to a read lacks an entry
// of its keys that a client may have seen applied before.
func TestHostsWithLeases(t *testing.T) {
	var all leaseReach
	full := *oneSeed == 0 && !testing.Short() && (*seedCount == 0 || *seedCount >= 20)
	for _, kind := range kinds {
		for _, lib := range leasedLibraries(kind) {
			ran := false
			t.Run(kind.String()+"/"+lib.Name, func(t *testing.T) {
				ran = true
				begun := time.Now()
				reached, leased := runLeased(t, options{Kind: kind, Library: lib}, 20)
				t.Logf("%v\n%v\n%v", time.Since(begun).Round(time.Millisecond), reached, leased)
				all.Add(leased)
			})
			full = full && ran // or -run chose some of them
		}
	}
	t.Logf("altogether\n%v", all)
	if full {
		require.Empty(t, world.Zeros(all), "never reached")
	}
}

// TestChangesAtOnce has two or three clients propose changes of the members at the same moment,
// at the leader and at followers, with coding, leases, both and neither, at hosts that apply a
// change before they report it and at leaders that report first. A change that does not fit
// any more is refused by the hosts.
func TestChangesAtOnce(t *testing.T) {
	for _, kind := range kinds {
		var all reach
		full := *oneSeed == 0 && !testing.Short() && (*seedCount == 0 || *seedCount >= 9)
		for _, lib := range []library{weft(), coded(kind), leased(weft(), kind, false, 0), leased(coded(kind), kind, true, 0)} {
			ran := false
			t.Run(kind.String()+"/"+lib.Name, func(t *testing.T) {
				ran = true
				reached := runSeeds(t, options{Kind: kind, Library: lib, Rush: true}, 9)
				t.Logf("pending %d, held %d, refused %d, applied %d, reported first %d", reached.ChangesPending, reached.ChangesHeld,
					reached.ChangesRefused, reached.ChangesApplied, reached.ChangesReportedFirst)
				all.Add(reached)
			})
			full = full && ran // or -run chose some of them
		}
		if full {
			require.NotZero(t, all.ChangesPending, "%v: proposed while another is pending", kind)
			require.NotZero(t, all.ChangesHeld, "%v: held", kind)
			require.NotZero(t, all.ChangesRefused, "%v: refused", kind)
			require.NotZero(t, all.ChangesApplied, "%v: applied", kind)
			require.Equal(t, kind == etcdLike, all.ChangesReportedFirst > 0, "%v: reported first", kind)
		}
	}
}

// TestLeasesNeedClocksWithinTheBound runs clocks that gain and lose far more than the settings
// say. If no read is stale then, the test above shows nothing.
func TestLeasesNeedClocksWithinTheBound(t *testing.T) {
	const seeds = 1000
	for _, kind := range kinds {
		lib := leased(weft(), kind, false, 25)
		found := false
		for seed := uint64(1); seed <= seeds && !found; seed++ {
			if r := run(seed, options{Kind: kind, Library: lib}); r.Err != nil {
				require.ErrorContains(t, r.Err, "somebody may have seen")
				t.Log(r.Err)
				found = true
			}
		}
		require.True(t, found, "%v: %d seeds, and no read was stale", kind, seeds)
	}
}

// TestSameStory shows that a run is a function of its seed.
func TestSameStory(t *testing.T) {
	for _, kind := range kinds {
		for _, lib := range append(libraries(kind), leasedLibraries(kind)...) {
			for seed := uint64(1); seed <= 2; seed++ {
				story := func() (string, result) {
					var b strings.Builder
					r := run(seed, options{Kind: kind, Library: lib, Trace: &b})
					return b.String(), r
				}
				a, ra := story()
				b, rb := story()
				require.Equal(t, ra, rb, "seed %d, %v on %s", seed, kind, lib.Name)
				if a != b {
					for i, la := range strings.Split(a, "\n") {
						require.Equal(t, la, strings.Split(b, "\n")[i], "seed %d, %v on %s, line %d", seed, kind, lib.Name, i+1)
					}
				}
			}
		}
	}
}
