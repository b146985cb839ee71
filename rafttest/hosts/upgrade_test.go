// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRollingUpgrade moves groups from upstream's library to this one, a member
// at a time, under load and faults, and back.
func TestRollingUpgrade(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			reached := runSeeds(t, Options{Kind: kind, Library: Upstream(), Rolling: []Library{Weft(), Coded(kind), Upstream()}}, 15)
			require.NotZero(t, reached.LibraryChanges)
			t.Logf("\n%v", reached)
		})
	}
}
