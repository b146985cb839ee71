// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func small() Plan {
	return Plan{
		Nodes: 7, Ranges: 4, PerRange: 2, Terminals: 3, Customers: 20, Items: 100, Text: 1, Rate: 1e9 / 8,
		Delay: time.Millisecond, Warm: 50 * time.Millisecond, Time: 300 * time.Millisecond, Seed: 1,
	}
}

func TestConditionsHoldOnEachReplica(t *testing.T) {
	for _, side := range []Side{Full, Forced, Adaptive} {
		for failed := range 3 {
			p := small()
			p.Failed = failed
			o, err := Run(t.Context(), p, side)
			require.NoError(t, err, "side %d, %d failed", side, failed)
			require.GreaterOrEqual(t, o.Checked, (replicas-failed)*p.Ranges)
			require.LessOrEqual(t, o.Checked, replicas*p.Ranges)
			for kind, n := range o.Counts {
				require.Positive(t, n, kindNames[kind])
			}
		}
	}
}

func TestLargeTextAndSlowLinksHoldTheConditions(t *testing.T) {
	p := small()
	p.Text, p.Rate, p.Leaders = 8, 100e6/8, 2
	for _, side := range []Side{Full, Adaptive} {
		o, err := Run(t.Context(), p, side)
		require.NoError(t, err)
		require.LessOrEqual(t, o.Busiest, 1.01, "a link takes more than its rate")
	}
}

// TestGroupsOfOneLeaderCodeTogether has ten groups fill the links of one leader, which full copies fill three times as much.
func TestGroupsOfOneLeaderCodeTogether(t *testing.T) {
	p := Plan{
		Nodes: 5, Ranges: 10, PerRange: 1, Terminals: 5, Leaders: 1, Customers: 10, Items: 100, Text: 8, Processors: 2, Rate: 100e6 / 8,
		Delay: 10 * time.Microsecond, Sync: time.Millisecond, Warm: 2 * time.Second, Time: time.Second, Seed: 1,
	}
	var all [2]float64
	for i, side := range []Side{Full, Adaptive} {
		o, err := Run(t.Context(), p, side)
		require.NoError(t, err)
		all[i] = o.All
	}
	require.Greater(t, all[1]/all[0], 2.5, "a group that tried full copies alone found them as good")
}

func TestThinkTimesAreAsSpecified(t *testing.T) {
	p := small()
	p.Think, p.Terminals, p.Warm, p.Time = true, 10, time.Minute, time.Minute
	o, err := Run(t.Context(), p, Adaptive)
	require.NoError(t, err)
	most := 12.86 * float64(p.Ranges*p.PerRange) // of clause 4.2.1: so many New-Orders a minute and warehouse
	require.Less(t, o.NewOrders, 1.2*most)
	require.Greater(t, o.NewOrders, 0.7*most)
}

func TestSecondRunPrintsTheSame(t *testing.T) {
	first, err := Run(t.Context(), small(), Adaptive)
	require.NoError(t, err)
	second, err := Run(t.Context(), small(), Adaptive)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestPlantedBugsBreakConditions(t *testing.T) {
	for _, bug := range []Bug{lostIntent, doubleApply, skippedLock} {
		p := small()
		p.Bug = bug
		_, err := Run(t.Context(), p, Full)
		require.ErrorIs(t, err, errInconsistent, "bug %d", bug)
		t.Log(err)
	}
}
