// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedBugs shows that the simulator finds what it should: each mistake
// of a host within a number of seeds, by looking at everything, and most of
// them also from outside, by what Raft promises alone.
func TestPlantedBugs(t *testing.T) {
	tests := []struct {
		bug Bug
		// within bounds the seeds until it is found; outside, the same
		// without a look into disks. 0: not asked for.
		within, outside uint64
	}{
		{AckBeforeSync, 10, 20},
		{ForgetVote, 20, 200},
		{LoseSynced, 20, 20},
		{ApplyAgain, 20, 20},
		{StaleReads, 10, 10},
		{ReadBeforeWait, 200, 200},
		{NoSessions, 20, 20},
		{SilentLoss, 200, 200},
		{ForgetConf, 50, 50},
		{LoseSessions, 20, 20},
	}
	for _, tt := range tests {
		t.Run(tt.bug.String(), func(t *testing.T) {
			for _, look := range []struct {
				outside bool
				within  uint64
			}{{false, tt.within}, {true, tt.outside}} {
				found := hunt(Options{Bug: tt.bug, Outside: look.outside}, look.within)
				require.NotNil(t, found, "not found within %d seeds", look.within)
				t.Logf("outside %-5v: seed %d: %s", look.outside, found.Seed, invariantOf(*found))
			}
		})
	}
}

// hunt runs seeds until one fails.
func hunt(opts Options, within uint64) (found *Result) {
	runSeeds(1, within, opts, func(r Result) bool {
		if r.Err != nil && (found == nil || r.Seed < found.Seed) {
			found = &r
		}
		return found == nil
	})
	return found
}

func invariantOf(r Result) string {
	var v *Violation
	if !errors.As(r.Err, &v) {
		return "none"
	}
	return v.Invariant
}
