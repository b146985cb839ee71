// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"testing"

	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// TestPlantedBugs shows that the simulator finds what it should: each mistake
// of a host within a number of seeds, by a look at everything, and most
// mistakes also from outside, by the promises of Raft alone.
func TestPlantedBugs(t *testing.T) {
	tests := []struct {
		bug bug
		// within is the number of seeds that must suffice to find the bug, outside the number
		// without a look into disks; 0: this search is left out.
		within, outside uint64
	}{
		{ackBeforeSync, 10, 50},
		{forgetVote, 20, 200},
		{losesSynced, 20, 20},
		{applyAgain, 20, 20},
		{staleReads, 10, 10},
		{readBeforeWait, 200, 200},
		{noSessions, 20, 20},
		{silentLoss, 200, 200},
		{forgetConf, 50, 50},
		{loseSessions, 20, 20},
	}
	for _, tt := range tests {
		t.Run(tt.bug.String(), func(t *testing.T) {
			from := uint64(1)
			for _, look := range []struct {
				outside bool
				within  uint64
			}{{false, tt.within}, {true, tt.outside}} {
				if look.within == 0 || look.outside && testing.Short() {
					continue
				}
				// A look at everything found nothing in earlier seeds, so a look from outside would find nothing.
				from = hunt(t, options{Bug: tt.bug, Outside: look.outside}, from, look.within)
			}
		})
	}
}

// hunt returns the first seed that fails, from one seed on and within a number of seeds.
func hunt(t *testing.T, opts options, from, within uint64) uint64 {
	t.Helper()
	return seeds.Hunt(t, from, within, func(seed uint64) runResult { return run(seed, opts) }).Seed
}
