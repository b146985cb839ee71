// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadsAtANewLeaderCostARoundAndNothingForTheirSize(t *testing.T) {
	read := func(side Side, size int) []time.Duration {
		took, err := FirstReads{Voters: 5, Entries: 10, Size: size, Rest: time.Second, Reads: 4, Seed: 1}.Run(side)
		require.NoError(t, err)
		require.Len(t, took, 4)
		return took
	}
	for _, side := range []Side{Ours(), FullCopies()} {
		small, large := read(side, 4<<10), read(side, 1<<20)
		require.Equal(t, small[1:], large[1:], "a read asks for no payload")
		require.Greater(t, small[0], small[1], "the first waits for the first commit, too")
		for _, d := range small[1:] {
			require.GreaterOrEqual(t, d, 200*time.Microsecond, "a round")
			require.Less(t, d, time.Millisecond)
		}
	}
}
