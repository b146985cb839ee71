// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBusyProcessorsAreShares has looks at a real machine: between any two, a share.
func TestBusyProcessorsAreShares(t *testing.T) {
	var l processorLooks
	now := time.Now()
	require.Zero(t, l.busy(now), "nothing is known yet")
	l.own -= time.Hour // as if the process had used more than there is
	got := l.busy(now.Add(busyEvery))
	require.Equal(t, busyGain, got, "the share is bounded, and has the weight of one look")
	require.Equal(t, got, l.busy(now.Add(busyEvery+time.Millisecond)), "no second look so soon")
}

func TestShareOfNothingIsZero(t *testing.T) {
	require.Zero(t, shareOf(1, 0))
	require.Zero(t, shareOf(-1, 2))
	require.Equal(t, 0.5, shareOf(1, 2))
}

func TestProcessorsThatAreBusyWithOthersCountLess(t *testing.T) {
	for _, c := range []struct{ own, machine, want float64 }{
		{0.3, 0.9, 0.9}, {ownCounts, 0.9, 0.9}, {0.1, 0.9, 0.45}, {0, 1, 0}, {0.5, 0.4, 0.5},
	} {
		require.InDelta(t, c.want, busyShare(c.own, c.machine), 1e-9, c)
	}
}
