// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClockIsUnfitUntilAMinuteWithinTheBoundHasPassed(t *testing.T) {
	var r rates
	require.NoError(t, fitness(r.worst(), 1000), "nothing was measured")
	for range 3 {
		r.add(1000)
	}
	require.NoError(t, fitness(r.worst(), 1000))
	r.add(-1001)
	for range recentCount - 1 {
		require.EqualError(t, fitness(r.worst(), 1000), "in the last minute the clock of leases ran 1001 microseconds a second slower than the hardware, and Leases.DriftPPM is 1000: "+
			"mend the clock, or raise DriftPPM at all members")
		r.add(20)
	}
	require.Error(t, fitness(r.worst(), 1000))
	r.add(20)
	require.NoError(t, fitness(r.worst(), 1000))
	r.add(5000)
	require.ErrorContains(t, fitness(r.worst(), 1000), "5000 microseconds a second faster")
	require.NoError(t, fitness(r.worst(), 5000))
}

func TestWatchedClockGoesByWhatWasMeasured(t *testing.T) {
	w := Watched{DriftPPM: 500}
	require.NoError(t, w.Fit())
	require.Positive(t, w.Now())
	measured := func(ppm int64) {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		watch.recent.add(ppm)
	}
	defer func() {
		for range recentCount {
			measured(0)
		}
	}()
	measured(501)
	require.ErrorContains(t, w.Fit(), "501 microseconds a second faster")
	require.NoError(t, Watched{DriftPPM: 1000}.Fit())
	require.NoError(t, Watched{}.Fit(), "without a bound the default of leases counts")
	measured(1001)
	require.ErrorContains(t, Watched{}.Fit(), "Leases.DriftPPM is 1000")
}
