// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// printed is what YCSB's client prints, shortened.
const printed = `[OVERALL], RunTime(ms), 1008
[OVERALL], Throughput(ops/sec), 4021.8
[TOTAL_GCs_G1_Old_Generation], Count, 0
[READ], Operations, 2003
[READ], AverageLatency(us), 270.5
[READ], 50thPercentileLatency(us), 250
[READ], 99thPercentileLatency(us), 1900
[READ], Return=OK, 2000
[READ], Return=NOT_FOUND, 3
[CLEANUP], Operations, 8
[UPDATE], Operations, 2051
[UPDATE], 50thPercentileLatency(us), 800
[UPDATE], 99thPercentileLatency(us), 5000
[UPDATE], Return=OK, 2050
[UPDATE], Return=ERROR, 1
[READ-MODIFY-WRITE], Operations, 1000
[READ-MODIFY-WRITE], 99thPercentileLatency(us), 9999
`

func TestParseYCSB(t *testing.T) {
	r, err := parseYCSB(strings.NewReader(printed))
	require.NoError(t, err)
	row, err := r.row()
	require.NoError(t, err)
	require.Equal(t, Row{Tool: "YCSB", PerSecond: 4021.8, P50: 0.25, P99: 1.9, WriteP50: 0.8, WriteP99: 5, Failed: 4}, row)
	_, err = parseYCSB(strings.NewReader("Exception in thread"))
	require.ErrorContains(t, err, "printed no throughput: \"Exception in thread\"")
	r, err = parseYCSB(strings.NewReader("[OVERALL], Throughput(ops/sec), 1\n[READ], Return=ERROR, 5\n"))
	require.NoError(t, err)
	_, err = r.row()
	require.ErrorContains(t, err, "no operation succeeded, and 5 failed")
}

func TestYCSBThatIsNotThereIsNamed(t *testing.T) {
	require.NoError(t, YCSB{}.check())
	require.Error(t, YCSB{Dir: t.TempDir()}.check())
}

func TestReportSaysWhereKvdemoLoses(t *testing.T) {
	cfg := Config{Nodes: 3, Rounds: 2, Requests: 10, YCSB: YCSB{Records: 5, Dir: "x", Clients: 4}}
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

func TestConfigNamesEveryMistake(t *testing.T) {
	err := Config{YCSB: YCSB{Clients: 20_000, Time: time.Millisecond}}.Validate()
	for _, want := range []string{"--nodes: 0, want 1 to 9", "--rounds: 0", "--requests: 0", "--records: 0", "--clients: 20000, want 1 to 10000", "--time: 1ms, want 1s or more"} {
		require.ErrorContains(t, err, want)
	}
}
