// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var (
	jointCount = flag.Uint64("joint-seeds", 4000, "how many seeds TestJoints runs")
	jointFirst = flag.Uint64("joint-first", 1, "the first of the seeds that TestJoints runs")
	jointStop  = flag.Int("joint-stop", 5, "TestJoints ends when so many seeds have failed")
	jointSeed  = flag.Uint64("joint-seed", 0, "run this seed of joints only; with -v its whole story is printed")
	jointSkip  = flag.Uint64("joint-skip", 0, "acts that do not happen, by bit, in the one seed that TestJoints runs")
	jointQuick = flag.Uint64("joint-quick", 3000, "how many seeds TestJointsQuick runs, from -joint-first on")
	jointTally = flag.Bool("joint-tally", false, "TestJoints counts the seeds that fail, by invariant, and tells no story")
)

var jointOptions = options{Joints: true, Process: processCore}

// TestJoints runs brief clusters in which coding, leases and changes of the members meet.
func TestJoints(t *testing.T) {
	runJoints(t, *jointCount, jointOptions)
}

// TestJointsQuick runs brief clusters of few acts: for a million of them by hand.
func TestJointsQuick(t *testing.T) {
	opts := jointOptions
	opts.Quick = true
	runJoints(t, *jointQuick, opts)
}

func runJoints(t *testing.T, count uint64, opts options) {
	opts.Skip = *jointSkip
	u := suite{first: *jointFirst, count: inShort(count, 200), one: *jointSeed, stop: *jointStop, opts: opts}
	u.report = func(r runResult) string { return reportJoint(t, r, opts) }
	var reached jointReach
	tally := map[string][]uint64{}
	u.each = func(r runResult) {
		reached.Add(r.Joints)
		var v *world.Violation
		if errors.As(r.Err, &v) {
			what, _, _ := strings.Cut(v.Detail, "\n")
			if i := strings.Index(what, ";"); i > 0 && v.Invariant != liveness {
				what = what[:i]
			}
			_, theme, _ := strings.Cut(r.Plan, "joints:{")
			theme, _, _ = strings.Cut(theme, ";")
			key := fmt.Sprintf("%-9s ", theme) + v.Invariant + ": " + digits(what)
			tally[key] = append(tally[key], r.Seed)
		}
	}
	if *jointTally {
		u.report = func(r runResult) string {
			what, _, _ := strings.Cut(r.Err.Error(), "\n")
			return fmt.Sprintf("seed %d: %s", r.Seed, what)
		}
	}
	_, _, enough := u.run(t)
	t.Logf("\n%s", reached)
	for _, key := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%5d %s, first %v", len(tally[key]), key, tally[key][:min(3, len(tally[key]))])
	}
	if enough && !opts.Quick {
		require.Empty(t, reached.Missing(), "never reached")
	}
}

// digits puts a sign in the place of each number.
func digits(text string) string {
	var b strings.Builder
	in := false
	for _, c := range text {
		is := c >= '0' && c <= '9'
		switch {
		case !is:
			b.WriteRune(c)
		case !in:
			b.WriteByte('#')
		}
		in = is
	}
	return b.String()
}

// reportJoint describes a failed run without the acts that do not matter.
func reportJoint(t *testing.T, r runResult, opts options) string {
	r, skip := shrink(r, opts)
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test ./rafttest -run '%s$' -joint-seed %d -joint-skip %#x -v\n%s", r.Seed, r.Err, r.Plan, t.Name(), r.Seed, skip, r.Story)
}

// TestStuckLeaders runs brief joints in which a stuck leader has late entries when it hands over,
// knows of no heir because reports were lost, or has more riders to complete than it wants at a time.
func TestStuckLeaders(t *testing.T) {
	opts := jointOptions
	opts.Quick = true
	for _, seed := range []uint64{94841, 227542, 272500, 322450, 587285, 766708, 879298} {
		if r := run(seed, opts); r.Err != nil {
			t.Error(reportJoint(t, r, opts))
		}
	}
}

// TestJointsSameStory shows that a run is a function of its seed, with members of
// upstream's library, too.
func TestJointsSameStory(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		a, b := run(seed, jointOptions), run(seed, jointOptions)
		require.Equal(t, a.Hash, b.Hash, "seed %d", seed)
		require.Equal(t, a.Joints, b.Joints, "seed %d", seed)
	}
}
