// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedBugs shows that the simulator finds what it should: each mistake
// of a host within a number of seeds, by looking at everything, and most of
// them also from outside, by what Raft promises alone.
func TestPlantedBugs(t *testing.T) {
	tests := []struct {
		bug     Bug
		process Process
		// within bounds the seeds until it is found; outside, the same
		// without a look into disks. 0: not asked for.
		within, outside uint64
	}{
		{AckBeforeSync, ProcessCore, 10, 50},
		{ForgetVote, ProcessCore, 20, 200},
		{LoseSynced, ProcessCore, 20, 20},
		{ApplyAgain, ProcessCore, 20, 20},
		{StaleReads, ProcessCore, 10, 10},
		{ReadBeforeWait, ProcessCore, 200, 200},
		{NoSessions, ProcessCore, 20, 20},
		{SilentLoss, ProcessCore, 200, 200},
		{ForgetConf, ProcessCore, 50, 50},
		{LoseSessions, ProcessCore, 20, 20},
		{AckBeforeSync, ProcessHost, 10, 50},
		{ForgetVote, ProcessHost, 50, 0},
		{LoseSynced, ProcessHost, 50, 50},
		{StaleReads, ProcessHost, 20, 20},
		{NoSessions, ProcessHost, 50, 50},
		{SilentLoss, ProcessHost, 400, 400},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.bug, "/", tt.process), func(t *testing.T) {
			for _, look := range []struct {
				outside bool
				within  uint64
			}{{false, tt.within}, {true, tt.outside}} {
				if look.within == 0 || look.outside && testing.Short() {
					continue
				}
				found := hunt(Options{Bug: tt.bug, Process: tt.process, Outside: look.outside}, look.within)
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
