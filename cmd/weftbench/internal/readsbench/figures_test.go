// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheFailureOfAResponderHoldsWritesUp(t *testing.T) {
	cfg := Config{Clients: 2, Value: 128, Seed: 1}
	got, err := cfg.ChangeRoster("roster")
	require.NoError(t, err)
	t.Logf("held %v after the failure, %v after the call; %d of %d reads late", got.FailedHeld, got.CalledHeld, got.LateReads, got.Reads)
	require.Zero(t, got.Wrong)
	require.Greater(t, got.FailedHeld, failTime/2, "nobody knows before")
	require.Less(t, got.FailedHeld, failTime+leaseTime+200*time.Millisecond)
	require.Less(t, got.CalledHeld, 200*time.Millisecond)
}

func TestReadsAreAsLocalAsKeysAreCovered(t *testing.T) {
	cfg := Config{Time: 300 * time.Millisecond, Clients: 2, Value: 128, Seed: 1}
	at := func(covered float64) Cell {
		cell, err := cfg.Measure(Load{Network: "wan", Policy: "roster", Keys: 1000, Writes: 0.1, Covered: covered})
		require.NoError(t, err)
		require.Zero(t, cell.Wrong)
		return cell
	}
	require.Greater(t, at(0.25).ReadMean, at(1).ReadMean)
	_, err := cfg.Measure(Load{Network: "moon", Policy: "roster", Keys: 1})
	require.ErrorContains(t, err, "moon")
}
