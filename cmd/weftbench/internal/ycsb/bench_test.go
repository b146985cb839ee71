// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ycsb

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReportHasATableForEachPlaceAndValue(t *testing.T) {
	b := &Bench{Client: Client{Records: 10_000, Clients: 4}, Nodes: 3, Rounds: 2, Values: []int{1 << 10, 64 << 10}, Delays: []time.Duration{0, 15 * time.Millisecond}, CodeFrom: 4096}
	var rows []Row
	for _, factor := range []float64{1, 3} {
		rows = append(rows,
			Row{sideKvdemo, 0, 1 << 10, Result{Workload: "A", PerSecond: 10 * factor, P50: 1, P99: 2, WriteP50: 3, WriteP99: 4, Failed: 1}},
			Row{sideOnWeft, 0, 1 << 10, Result{Workload: "A", PerSecond: 20, P50: 5, P99: 6}},
			Row{sideEtcd, 0, 1 << 10, Result{Workload: "A", PerSecond: 10, P50: 7, P99: 8, WriteP50: 9, WriteP99: 10}})
	}
	text := b.Report(rows).Markdown()
	require.Contains(t, text, "| A: half reads, half updates | 20 | 20 | 10 | 2.00 (1.00 to 3.00) | 2.00 (2.00 to 2.00) | 1.00, 2.00 | 5.00, 6.00 | 7.00, 8.00 | 3.00, 4.00 | - | 9.00, 10.00 |\n")
	require.Contains(t, text, "10000 records of 1 KB.")
	require.Contains(t, text, "1000 records of 64 KB.")
	require.Contains(t, text, "## WAN, 15ms one way")
	require.Contains(t, text, "Operations that failed: 2.")
}
