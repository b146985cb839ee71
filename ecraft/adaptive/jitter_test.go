// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFewAnswersAreWaitedForLonger checks that the k-th answer comes the later the fewer followers
// are to answer.
func TestFewAnswersAreWaitedForLonger(t *testing.T) {
	a := &Policy{jitter: []float64{1, 2, 3, 4}}
	for k := 1; k <= 4; k++ {
		require.InDelta(t, float64(k), a.wait(k, 4), 1e-12, "all are to answer")
	}
	require.InDelta(t, 10.0/3, a.wait(2, 2), 1e-12)
	require.InDelta(t, 2.5, a.wait(2, 3), 1e-12)
	require.InDelta(t, 4, a.wait(4, 3), 1e-12, "more than can be is as many as can be")
	one := &Policy{jitter: []float64{5}}
	require.InDelta(t, 5, one.wait(1, 1), 1e-12)
}
