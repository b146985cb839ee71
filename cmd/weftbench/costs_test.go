// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCosts fits costs to three processes, by loads that are too short for more than a look.
func TestCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	out, progress, err := weftbench(t, "costs", "--rounds", "1", "--time", "50ms", "--sizes", "16", "--clients", "4", "--data", t.TempDir())
	require.NoError(t, err, progress)
	require.Regexp(t, `gRPC call +a call by gRPC, beside +\d+\.\d+\n`, out)
	require.Regexp(t, `leaders +30 +\d`, out)
	require.Regexp(t, `gateways +24 +\d`, out)
	require.Contains(t, progress, "var Fitted = Costs{")
}

// TestCompartmentsOfProcesses has three nodes and three gateways as processes, each load too short for more than a look.
func TestCompartmentsOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	out, progress, err := weftbench(t, "compartments", "--real", "--real-rounds", "1", "--real-time", "50ms", "--real-sizes", "16", "--real-clients", "4", "--data", t.TempDir())
	require.NoError(t, err, progress)
	for _, calls := range []string{"lean, 16 B written", "rpc, 16 B written", "lean, ReadIndex", "rpc, quorum read"} {
		require.Regexp(t, calls+`, 4 clients +3 +[1-9]\d* +\d+\.\d +\d+\.\d\d +\d+\.\d +[1-9]`, out, "gateways take processor time")
	}
	for want, args := range map[string][]string{"--real-rounds": {"--real-rounds", "0"}, "--real-sizes": {"--real-sizes", "2"}, "--out": {"--real-rounds", "1", "--out", "x"}} {
		_, _, err := weftbench(t, append([]string{"compartments", "--real"}, args...)...)
		require.ErrorContains(t, err, want)
	}
}

func TestCompartments(t *testing.T) {
	out, progress, err := weftbench(t, "compartments", "--quick", "--time", "50ms")
	require.NoError(t, err, progress)
	require.Contains(t, out, "Beside the paper")
	for want, args := range map[string][]string{
		"--clients": {"--clients", "0"}, "--readers": {"--readers", "101"}, "--delay": {"--delay", "0s"}, "--time": {"--time", "1ms"},
	} {
		_, _, err := weftbench(t, append([]string{"compartments"}, args...)...)
		require.ErrorContains(t, err, want)
	}
}
