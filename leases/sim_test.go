// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"flag"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedCount = flag.Uint64("lease-seeds", 4000, "how many seeds TestClusters runs")
	firstSeed = flag.Uint64("lease-first", 1, "the first of the seeds that TestClusters runs")
	oneSeed   = flag.Uint64("lease-seed", 0, "run this seed only; with -v its whole story is printed")
	countAll  = flag.Bool("lease-count", true, "TestClusters fails if it did not come by all that it should")
	onlyCheck = flag.String("lease-only", "", "look at this invariant only, such as Fresh")
)

// runSeed runs one seed: first disturbed, then in peace until all is well again.
func runSeed(seed uint64, opt options) *world {
	w := newWorld(seed, opt)
	w.begin()
	w.disturb()
	w.run(w.between(500*time.Millisecond, 2*time.Second)) // brief runs find more than long ones
	if seed%4 == 0 {
		w.recover()
	}
	for _, m := range w.members {
		m.count()
	}
	return w
}

// TestClusters runs groups with clocks within the bound. Nobody answers a read
// without a write that was acknowledged or read before.
func TestClusters(t *testing.T) {
	opt := options{only: *onlyCheck}
	if *oneSeed > 0 {
		opt.verbose = testing.Verbose()
		w := runSeed(*oneSeed, opt)
		fmt.Println(strings.Join(w.trace, "\n"))
		require.Empty(t, w.failure)
		return
	}
	var total reached
	count := *seedCount
	if testing.Short() {
		count = min(count, 200)
	}
	for seed := *firstSeed; seed < *firstSeed+count; seed++ {
		w := runSeed(seed, opt)
		total.add(w.reached)
		if w.failure != "" {
			t.Fatalf("%s\nrepeat with: go test ./leases -run TestClusters -v -lease-seed=%d", w.failure, seed)
		}
	}
	t.Logf("%d seeds reached %+v", count, total)
	if *countAll && count >= 1000 {
		v := reflect.ValueOf(total)
		for i := range v.NumField() {
			require.Positive(t, v.Field(i).Int(), v.Type().Field(i).Name)
		}
	}
}

// TestClocksBeyondTheBoundAreSeen runs groups whose clocks drift more than the
// settings say. That leases are wrong then, in what clients see, must come out:
// else the checks above would see nothing either.
func TestClocksBeyondTheBoundAreSeen(t *testing.T) {
	const seeds = 500
	for seed := uint64(1); seed <= seeds; seed++ {
		if w := runSeed(seed, options{beyond: 4, only: "Fresh"}); w.failure != "" {
			t.Log(w.failure)
			return
		}
	}
	t.Fatalf("%d seeds, and no read was stale", seeds)
}
