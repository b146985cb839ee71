// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedBugs shows that the simulator finds what it should: each mistake
// within a number of seeds.
func TestPlantedBugs(t *testing.T) {
	for _, tt := range []struct {
		bug    Bug
		within uint64
	}{
		{TermIgnored, 1000},
		{LostOrigins, 1000},
		{LostSessions, 1000},
		{NoSessions, 1000},
		{FollowerBarrier, 1000},
		{NoWait, 1000},
		{NoFsync, 1000},
		{EarlyAck, 1000},
		{NoQueueBudget, 1000},
		{NoInboxBudget, 1000},
		{NoLinkBudget, 1000},
		{ApplyAgain, 1000},
		{NewerBody, 1000},
		{RefusedLate, 1000},
		{EarlyDurable, 1000},
	} {
		t.Run(tt.bug.String(), func(t *testing.T) {
			found := hunt(Options{Bug: tt.bug}, tt.within)
			require.NotNil(t, found, "not found within %d seeds", tt.within)
			var v *Violation
			require.True(t, errors.As(found.Err, &v))
			t.Logf("seed %d: %v", found.Seed, v.Invariant)
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
