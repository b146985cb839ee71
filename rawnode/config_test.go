// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHostConfigNamesEveryMistake(t *testing.T) {
	err := Config{}.Validate()
	for _, want := range []string{"ID is 0", "Log is", "StateMachine is", "Transport is"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, err, ErrInvalid)
}

// A number of ticks or a time whose sums would overflow is named, and does not end calls at once.
func TestConfigWithTimesThatOverflowIsRefused(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	host := Config{Replica: ReplicaConfig{ElectionTick: math.MaxInt}, TickInterval: forever, DefaultTimeout: forever, SnapshotTimeout: forever}.Validate()
	gate := GatewayConfig{ElectionTick: math.MaxInt, TickInterval: forever, DefaultTimeout: forever}.Validate()
	for _, err := range []error{host, gate} {
		require.ErrorContains(t, err, "TickInterval is 2562047h47m16.854775807s, want 1ms to 1h0m0s")
		require.ErrorContains(t, err, "DefaultTimeout is 2562047h47m16.854775807s, want 0 to 8760h0m0s")
	}
	require.ErrorContains(t, host, "SnapshotTimeout is 2562047h47m16.854775807s, want 0 to 8760h0m0s")
	host = Config{Replica: ReplicaConfig{ElectionTick: 100_001}, TickInterval: time.Hour}.Validate()
	gate = GatewayConfig{ElectionTick: 100_001, TickInterval: time.Hour}.Validate()
	for _, err := range []error{host, gate} {
		require.ErrorContains(t, err, "ElectionTick is 100001, want at most 100000 ticks of 1h0m0s")
	}
}
