// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/ycsb"
)

func TestParseCSV(t *testing.T) {
	rows, err := parseCSV("noise\n\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n" +
		"\"SET\",\"100.50\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"\n\"MSET (10 keys)\",\"7\",\"1\",\"2\",\"8\",\"4\",\"9\",\"6\"\n")
	require.NoError(t, err)
	require.Equal(t, []Row{
		{Tool: "redis-benchmark", Test: "SET", PerSecond: 100.5, P50: 3, P99: 5},
		{Tool: "redis-benchmark", Test: "MSET (10 keys)", PerSecond: 7, P50: 8, P99: 9},
	}, rows)
	for _, bad := range []string{"", "ERR", "\"SET\",\"1\"\n", "\"SET\",\"x\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"\n"} {
		_, err := parseCSV(bad)
		require.Error(t, err, bad)
	}
}

func TestReportSaysWhereKvdemoLoses(t *testing.T) {
	cfg := Config{Nodes: 3, Rounds: 2, Requests: 10, YCSB: ycsb.Client{Records: 5, Dir: "x", Clients: 4}}
	var rows []Row
	for round, factor := range []float64{1, 3} {
		rows = append(rows,
			Row{Side: sideKvdemo, Round: round, Tool: "redis-benchmark", Test: "SET", Clients: 4, Pipeline: 1, PerSecond: 50 * factor, P50: 1, P99: 2},
			Row{Side: sideRedis, Round: round, Tool: "redis-benchmark", Test: "SET", Clients: 4, Pipeline: 1, PerSecond: 40, P50: 3, P99: 4},
			Row{Side: sideKvdemo, Round: round, Tool: "YCSB", Test: "A", Clients: 4, Pipeline: 1, PerSecond: 10 * factor, P50: 1, P99: 2, WriteP50: 3, WriteP99: 4, Failed: 1},
			Row{Side: sideRedis, Round: round, Tool: "YCSB", Test: "A", Clients: 4, Pipeline: 1, PerSecond: 40, P50: 3, P99: 4, WriteP50: 5, WriteP99: 6},
			Row{Side: sideEtcd, Round: round, Tool: "YCSB", Test: "A", Clients: 4, Pipeline: 1, PerSecond: 5, P50: 7, P99: 8, WriteP50: 9, WriteP99: 10})
	}
	text := Report(cfg, rows).Markdown()
	require.Contains(t, text, "| SET | 4 | 1 | 100 | 40 | 2.50 (1.25 to 3.75) | 1.00, 2.00 | 3.00, 4.00 |\n")
	require.Contains(t, text, "| A: half reads, half updates | 20 | 40 | 5 | 0.50 (0.25 to 0.75) | 4.00 (2.00 to 6.00) | 1.00, 2.00 | 3.00, 4.00 | 7.00, 8.00 | 3.00, 4.00 | 5.00, 6.00 | 9.00, 10.00 |\n")
	require.Contains(t, text, "kvdemo is slower than redis-server in 1 of 2 rows, and than etcd in 0 of 1. Operations that failed: 2.")
	text = Report(cfg, rows[:2]).Markdown()
	require.NotContains(t, text, "YCSB")
	require.Contains(t, text, "kvdemo is slower than redis-server in 0 of 1 rows. Operations")
}
