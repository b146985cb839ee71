// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var (
	jointCount = flag.Uint64("joint-seeds", 4000, "how many seeds TestJoints runs")
	jointFirst = flag.Uint64("joint-first", 1, "the first of the seeds that TestJoints runs")
	jointSeed  = flag.Uint64("joint-seed", 0, "run this seed of joints only; with -v its whole story is printed")
	jointQuick = flag.Uint64("joint-quick", 3000, "how many seeds TestJointsQuick runs, from -joint-first on")
)

// TestJoints runs brief clusters in which coding, leases and changes of the members meet.
func TestJoints(t *testing.T) {
	reached, held := runJoints(t, "joints", *jointCount)
	if held >= 1000 {
		require.Empty(t, reached.Missing(), "never reached")
	}
}

// TestJointsQuick runs brief clusters of few acts: for a million of them by hand.
func TestJointsQuick(t *testing.T) {
	runJoints(t, "quick", *jointQuick)
}

// runJoints runs seeds, and lists those that fail by theme and by what does not hold.
func runJoints(t *testing.T, kind string, count uint64) (reached jointReach, held uint64) {
	failed := map[string][]uint64{}
	held = kinds[kind].suite().All(t, *jointFirst, seeds.InShort(count, 200), *jointSeed, func(r runResult) {
		world.AddCounts(&reached, r.Joints)
		var v *world.Violation
		if errors.As(r.Err, &v) {
			what, _, _ := strings.Cut(v.Detail, "\n")
			if i := strings.Index(what, ";"); i > 0 && v.Invariant != liveness {
				what = what[:i]
			}
			_, theme, _ := strings.Cut(r.Plan, "joints:{")
			theme, _, _ = strings.Cut(theme, ";")
			key := fmt.Sprintf("%-9s %s: %s", theme, v.Invariant, digits.ReplaceAllString(what, "#"))
			failed[key] = append(failed[key], r.Seed)
		}
	})
	t.Logf("\n%s", reached)
	for _, key := range slices.Sorted(maps.Keys(failed)) {
		t.Logf("%5d %s, first %v", len(failed[key]), key, failed[key][:min(3, len(failed[key]))])
	}
	return reached, held
}

var digits = regexp.MustCompile(`[0-9]+`)

// TestStuckLeaders runs brief joints in which a stuck leader has late entries when it hands over,
// knows of no heir because reports were lost, or has more riders to complete than it wants at a time.
func TestStuckLeaders(t *testing.T) {
	for _, seed := range []uint64{94841, 227542, 272500, 322450, 587285, 766708, 879298} {
		kinds["quick"].suite().Check(t, seed)
	}
}
