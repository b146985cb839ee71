// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

// TestRollingUpgrade moves groups from upstream's library to this one, a member
// at a time, under load and faults, and back: with coding as a step of its own,
// and straight there, with a change of mind.
func TestRollingUpgrade(t *testing.T) {
	for _, kind := range kinds {
		for name, way := range map[string][]library{
			"in steps": {weft(), coded(kind), upstreamLibrary()},
			"straight": {coded(kind), weft(), coded(kind), upstreamLibrary()},
		} {
			t.Run(kind.String()+"/"+name, func(t *testing.T) {
				reached := runSeeds(t, options{Kind: kind, Library: upstreamLibrary(), Rolling: way}, 10).Reached
				require.NotZero(t, reached.LibraryChanges)
				if *oneSeed == 0 {
					require.NotZero(t, reached.CodedEntries, "nothing was coded")
				}
				t.Logf("\n%v", world.Table(reached))
			})
		}
	}
}

// TestLeavingNeedsDenseLogs leaves out what an operator does before a group
// leaves coding: members then apply parts of payloads.
func TestLeavingNeedsDenseLogs(t *testing.T) {
	for _, kind := range kinds {
		hasty := coded(kind)
		hasty.hasty = true
		err := hunt(t, 60, options{Kind: kind, Library: hasty, Rolling: []library{upstreamLibrary()}})
		require.ErrorContains(t, err, "dies: entry")
	}
}
