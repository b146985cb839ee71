// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramCountsByUpperBound(t *testing.T) {
	var h Histogram
	for _, took := range []time.Duration{0, 100 * time.Microsecond, 101 * time.Microsecond, time.Millisecond, 10 * time.Second, time.Hour} {
		h.Observe(took)
	}
	require.Equal(t, Counts{0: 2, 1: 1, 3: 1, 15: 1, 16: 1}, h.Load())
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Observe(time.Second) }))
}

func TestQuantilesAreUpperBounds(t *testing.T) {
	require.Nil(t, Counts{}.quantileMs(0.5), "without calls there is none")
	c := Counts{0: 98, 6: 1, 16: 1}
	require.InDelta(t, 0.1, *c.quantileMs(0.5), 1e-9)
	require.InDelta(t, 10, *c.quantileMs(0.99), 1e-9)
	require.InDelta(t, 10_000, *c.quantileMs(1), 1e-9)
	require.InDelta(t, 10_000, *Counts{16: 1}.quantileMs(0), 1e-9)
}
