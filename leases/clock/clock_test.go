// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockNeverFallsAndIsFineEnough(t *testing.T) {
	require.NoError(t, Check(100*time.Millisecond))
	last := Boottime{}.Now()
	for range 1000 {
		at := Boottime{}.Now()
		require.GreaterOrEqual(t, at, last)
		last = at
	}
}

func TestClockTooCoarseForItsLeasesIsRefused(t *testing.T) {
	step, err := precision()
	require.NoError(t, err)
	if step == 0 {
		t.Skip("this system does not say how fine its clock is")
	}
	err = Check(step - 1)
	require.ErrorContains(t, err, "Leases.Resolution")
}

func TestRateIsMeasuredAgainstTheHardware(t *testing.T) {
	const second = time.Second
	var h Health
	h.add(reading{}, reading{raw: 10 * second, mono: 10*second + 5*time.Millisecond, boot: 10*second + 5*time.Millisecond})
	require.EqualValues(t, 500, h.RatePPM)
	require.True(t, h.Within(500))
	require.False(t, h.Within(499))

	h.add(reading{}, reading{raw: 10 * second, mono: 10*second - 20*time.Millisecond, boot: 10*second - 20*time.Millisecond})
	require.EqualValues(t, -2000, h.RatePPM)
	require.EqualValues(t, -2000, h.WorstPPM)

	h.add(reading{}, reading{raw: 10 * second, mono: 10 * second, boot: 10 * second})
	require.Zero(t, h.RatePPM)
	require.EqualValues(t, -2000, h.WorstPPM, "the worst is kept")
	require.EqualValues(t, 3, h.Measurements)
	require.Zero(t, h.Suspended)
}

func TestSuspensionIsNoDrift(t *testing.T) {
	var h Health
	h.add(reading{}, reading{raw: time.Second, mono: time.Second, boot: time.Hour})
	require.Equal(t, time.Hour-time.Second, h.Suspended)
	require.Zero(t, h.WorstPPM)
}

func TestMeasurementThatWasInterruptedDoesNotCount(t *testing.T) {
	var h Health
	h.add(reading{}, reading{raw: time.Second, mono: time.Second + 10*time.Millisecond, boot: time.Second, blur: time.Millisecond})
	require.Zero(t, h.Measurements)
	require.Zero(t, h.WorstPPM)
}

// A measurement is taken by whoever asks, when it is due, while somebody watches.
func TestWatchEndsWithItsLastWatcher(t *testing.T) {
	due := func(yes bool) (measured bool) {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		watch.due = hardware() + time.Hour
		if yes {
			watch.due = 0
		}
		was := watch.due
		measure()
		return watch.due != was
	}
	if _, ok := sample(); !ok {
		t.Skip("this system has one clock")
	}
	first, second := Watch(), Watch()
	first()
	first() // again has no effect
	require.True(t, due(true))
	require.False(t, due(false))
	second()
	require.False(t, due(true))
}

func TestLatestMeasuresWhatIsDue(t *testing.T) {
	defer Watch()()
	if _, ok := sample(); !ok {
		t.Skip("this system has one clock")
	}
	before := Latest().Measurements
	require.Eventually(t, func() bool { return Latest().Measurements > before }, time.Minute, 20*time.Millisecond)
}

// BenchmarkNow is what each read by a lease pays for the clock.
func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Boottime{}.Now()
	}
}
