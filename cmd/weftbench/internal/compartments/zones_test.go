// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
)

// TestUnitsComeIntoEachZoneOnce measures the bytes between zones for a byte of large commands. Five members stand in zones of 2, 2 and 1. At
// level 3 each follower is assigned a third of a payload: the leader sends a whole one into the two other zones, and their members 2/3
// more, or 1/3 into the zone with two followers, and 2/3 into the leader's: 8/3 together. A reader adds its headers.
func TestUnitsComeIntoEachZoneOnce(t *testing.T) {
	for _, readers := range []int{0, 10} {
		b := Default().Bed
		b.Value, b.Time = 16<<10, 2*b.Time // long beside what is under way in the end
		p := Plan{Members: 5, Readers: readers, Groups: 1, Batches: true, Way: hostnode.Lean, Clients: zoneClients, Zones: zones, Relays: true, Coded: true}
		coded, err := run(b, p)
		require.NoError(t, err)
		p.Upstream, p.Coded, p.Relays = true, false, false
		upstream, err := run(b, p)
		require.NoError(t, err)
		t.Logf("%d readers: %.3f bytes cross for a byte, with upstream's library, as etcd has it, %.3f", readers, coded.Crossed/float64(b.Value), upstream.Crossed/float64(b.Value))
		require.InEpsilon(t, 8./3, coded.Crossed/float64(b.Value), 0.05, "%d readers", readers)
	}
}
