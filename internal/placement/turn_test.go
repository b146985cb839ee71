// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVotersCampaignInTheOrderOfTheirWeights(t *testing.T) {
	weights := map[uint64]int{1: 0, 2: 50, 3: 50, 4: 200, 5: 0}
	wait := func(id uint64) uint64 {
		turn := NewTurn(id, weights[id])
		for other, weight := range weights {
			if other != id {
				turn.Beside(other, weight)
			}
		}
		return turn.Wait(10)
	}
	require.Equal(t, []uint64{10, 22, 24, 26, 28}, []uint64{wait(4), wait(2), wait(3), wait(1), wait(5)})
	for id := uint64(6); id < 20; id++ {
		weights[id] = 100
	}
	require.EqualValues(t, 30, wait(5), "there is a bound")
	alone := NewTurn(1, 0)
	require.EqualValues(t, 10, alone.Wait(10))
}
