// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigOfZeroFieldsIsUsable(t *testing.T) {
	c := Config{ID: 1, Boot: 1, ElectionTimeout: time.Second}
	require.NoError(t, c.Validate())
	n := started(c, Start{Empty: true})
	require.Equal(t, time.Second, n.cfg.Lease)
	require.Equal(t, time.Second, n.cfg.Quarantine)
	require.InDelta(t, 4*time.Millisecond, n.delta, float64(10*time.Microsecond)) // 0.2% of a second, and twice a millisecond
}

func TestConfigReportsEveryMistake(t *testing.T) {
	c := Config{
		Lease: -1, Quarantine: -2, Heartbeat: -3, Fail: -7, ElectionTimeout: -4, DriftPPM: 1_000_000, Resolution: -5,
		Wanted: []Want{{Nodes: []NodeID{0}}}, Tuner: &TunerConfig{Window: -6, Spans: -1, Least: -1},
	}
	err := c.Validate()
	require.ErrorIs(t, err, ErrConfig)
	for _, field := range []string{"ID is 0", "Boot is 0", "Lease is -1ns", "Quarantine is -2ns", "Heartbeat is -3ns", "Fail is -7ns",
		"ElectionTimeout is -4ns", "DriftPPM is 1000000", "Resolution is -5ns", "Wanted:", "Tuner.Window is -6ns", "Tuner.Spans is -1", "Tuner.Least is -1"} {
		require.ErrorContains(t, err, "leases: Config."+field)
	}
	require.Equal(t, 13, strings.Count(err.Error(), "\n")+1)
	_, err = New(c, Start{})
	require.ErrorIs(t, err, ErrConfig)
	c = Config{ID: 1, Boot: 1, ElectionTimeout: time.Second, Quarantine: math.MaxInt64, Fail: math.MaxInt64} // multiples would overflow
	require.ErrorContains(t, c.Validate(), "earlier runs; and at most 1h0m0s")
	require.ErrorContains(t, c.Validate(), "Fail is 2562047h47m16.854775807s, want at least two heartbeats, 200ms, and at most 1h0m0s")
	c = Config{ID: 1, Boot: 1, ElectionTimeout: 200 * time.Millisecond}
	require.ErrorContains(t, c.Validate(), "Heartbeat is 100ms, want at most 65.") // no lease would last until it is renewed
	require.True(t, errors.Is(c.Validate(), ErrConfig))
}

// delta is at least 2*rho*L/(1+rho) and a resolution at each end, rounded up, whatever L and rho are.
func TestDeltaIsLargeEnough(t *testing.T) {
	for _, ppm := range []int{1, 7, 1000, 33_333, maxDriftPPM} {
		for _, l := range []time.Duration{1, 999, time.Second, 1<<41 + 12345, time.Hour} {
			c := Config{Lease: l, DriftPPM: ppm, Resolution: 3}
			want := new(big.Int).Mul(big.NewInt(int64(2*ppm)), big.NewInt(int64(l)))
			want.Add(want, big.NewInt(int64(1_000_000+ppm-1)))
			want.Div(want, big.NewInt(int64(1_000_000+ppm)))
			require.Equal(t, want.Int64()+6, int64(c.delta(ClockBound{})), "%d ppm, %v", ppm, l)
		}
	}
}
