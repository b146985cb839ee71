// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlowFloors(t *testing.T) {
	sum := uint64(0)
	for _, floor := range slowFloors() {
		sum += floor.Least
	}
	require.GreaterOrEqual(t, sum, uint64(2000))

	type counts struct{ HungDisks, SlowSyncs, SlowMachines, SlowLinks, HeldLinks uint64 }
	var slow SlowSeeds
	floor := slowFloors()["TestSim"]
	for seed := range floor.Of {
		c := counts{SlowSyncs: 1, SlowMachines: 1, SlowLinks: 1, HeldLinks: 1}
		if seed < floor.Least-1 {
			c.HungDisks = 1
		}
		slow.Add(c)
	}
	require.Equal(t, []string{"HungDisks"}, slow.Fewer("TestSim"))
	slow.Add(counts{HungDisks: 1})
	require.Empty(t, slow.Fewer("TestSim"))
	require.Empty(t, slow.Fewer("TestOfNoFloor"))
}
