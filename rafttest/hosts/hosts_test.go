// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"flag"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var (
	seedCount = flag.Uint64("seeds", 0, "how many seeds to run for each library and host; 0: what each test finds right")
	firstSeed = flag.Uint64("first", 1, "the first of them")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only; with -v it tells its story")
)

// libraries are what the suite runs in a kind of host.
func libraries(kind kind) []library { return []library{upstreamLibrary(), weft(), coded(kind)} }

var kinds = []kind{etcdLike, cockroachLike}

// runSeeds runs n seeds, or those of the flags. A run changes the reader of crypto/rand, so they run one at a time.
func runSeeds(t *testing.T, opts options, n uint64) (total result) {
	if *seedCount != 0 {
		n = *seedCount
	}
	var mu sync.Mutex
	suite := seeds.Suite[result]{
		Again: "./rafttest/hosts -run '" + t.Name() + "$' -seed",
		Run: func(seed uint64, trace io.Writer) result {
			mu.Lock()
			defer mu.Unlock()
			opts.Trace = trace
			return run(seed, opts)
		},
	}
	suite.All(t, *firstSeed, seeds.InShort(n, 10), *oneSeed, func(r result) {
		world.AddCounts(&total.Reached, r.Reached)
		world.AddCounts(&total.Leases, r.Leases)
	})
	return total
}

// runLibraries runs n seeds with each library in a kind of host, and adds the counts of events to total. The seeds are
// enough for each event to have happened, unless flags or -run chose fewer seeds or libraries.
func runLibraries(t *testing.T, kind kind, libs []library, opts options, n uint64, total *result) (enough bool) {
	enough = *oneSeed == 0 && !testing.Short() && (*seedCount == 0 || *seedCount >= n)
	for _, lib := range libs {
		ran := false
		t.Run(kind.String()+"/"+lib.Name, func(t *testing.T) {
			ran = true
			opts.Kind, opts.Library = kind, lib
			r := runSeeds(t, opts, n)
			t.Logf("\n%v\n%v", world.Table(r.Reached), world.Table(r.Leases))
			world.AddCounts(&total.Reached, r.Reached)
			world.AddCounts(&total.Leases, r.Leases)
		})
		enough = enough && ran
	}
	return enough
}

// TestHosts runs both hosts with each library through faults, and requires that each
// event which can happen has happened.
func TestHosts(t *testing.T) {
	var all result
	enough := true
	for _, kind := range kinds {
		enough = runLibraries(t, kind, libraries(kind), options{}, 40, &all) && enough
	}
	if enough {
		require.Empty(t, world.Zeros(all.Reached, "LibraryChanges", // that is TestRollingUpgrade's, the others are TestChangesAtOnce's
			"ChangesPending", "ChangesHeld", "ChangesRefused", "ChangesReportedFirst"), "never reached")
	}
}

// leasedLibraries are the libraries that the suite runs with roster leases in a kind of host.
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
	var all result
	enough := true
	for _, kind := range kinds {
		enough = runLibraries(t, kind, leasedLibraries(kind), options{}, 20, &all) && enough
	}
	t.Logf("altogether\n%v", world.Table(all.Leases))
	if enough {
		require.Empty(t, world.Zeros(all.Leases), "never reached")
	}
}

// TestChangesAtOnce has two or three clients propose changes of the members at the same moment,
// at the leader and at followers, with coding, leases, both and neither, at hosts that apply a
// change before they report it and at leaders that report first. A change that does not fit
// any more is refused by the hosts.
func TestChangesAtOnce(t *testing.T) {
	for _, kind := range kinds {
		var all result
		libs := []library{weft(), coded(kind), leased(weft(), kind, false, 0), leased(coded(kind), kind, true, 0)}
		if reached := &all.Reached; runLibraries(t, kind, libs, options{Rush: true}, 9, &all) {
			require.NotZero(t, reached.ChangesPending, "%v: proposed while another is pending", kind)
			require.NotZero(t, reached.ChangesHeld, "%v: held", kind)
			require.NotZero(t, reached.ChangesRefused, "%v: refused", kind)
			require.NotZero(t, reached.ChangesApplied, "%v: applied", kind)
			require.Equal(t, kind == etcdLike, reached.ChangesReportedFirst > 0, "%v: reported first", kind)
		}
	}
}

// TestLeasesNeedClocksWithinTheBound runs clocks that gain and lose far more than the settings
// say. If no read is stale then, the test above shows nothing.
func TestLeasesNeedClocksWithinTheBound(t *testing.T) {
	for _, kind := range kinds {
		require.ErrorContains(t, hunt(t, 1000, options{Kind: kind, Library: leased(weft(), kind, false, 25)}), "somebody may have seen")
	}
}

// hunt returns what the first of n seeds to fail has found.
func hunt(t *testing.T, n uint64, opts options) error {
	t.Helper()
	for seed := uint64(1); seed <= n; seed++ {
		if r := run(seed, opts); r.Err != nil {
			t.Log(r.Err)
			return r.Err
		}
	}
	require.Failf(t, "not found", "%v on %s, within %d seeds", opts.Kind, opts.Library.Name, n)
	return nil
}

// TestSameStory shows that a run is a function of its seed.
func TestSameStory(t *testing.T) {
	for _, kind := range kinds {
		for _, lib := range append(libraries(kind), leasedLibraries(kind)...) {
			for seed := uint64(1); seed <= 2; seed++ {
				opts := options{Kind: kind, Library: lib}
				require.Equal(t, run(seed, opts), run(seed, opts), "seed %d, %v on %s", seed, kind, lib.Name)
			}
		}
	}
}
