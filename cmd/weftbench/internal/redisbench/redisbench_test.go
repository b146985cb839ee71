// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"math/rand/v2"
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

func TestZipfDrawsThePopularMore(t *testing.T) {
	z := newZipf(1000, 0.99)
	r := rand.New(rand.NewPCG(1, 2))
	counts := make([]int, 1000)
	for range 100_000 {
		counts[z.draw(r)]++
	}
	require.InDelta(t, 100_000/z[999], counts[0], 1500, "the first has 1 of the sum of 1/i")
	require.InDelta(t, float64(counts[0])/2, counts[1], 1500)
	require.Positive(t, counts[999]+counts[998]+counts[997])
	seen := map[string]bool{}
	for n := range 1000 {
		seen[YCSB{}.key(n)] = true
	}
	require.Len(t, seen, 1000)
}

func TestReportSaysWhereKvdemoLoses(t *testing.T) {
	cfg := Config{Nodes: 3, Rounds: 2, Requests: 10, YCSB: YCSB{Records: 5, Size: 6, Seed: 7}}
	var rows []Row
	for round, factor := range []float64{1, 3} {
		rows = append(rows,
			Row{Side: SideKvdemo, Round: round, Tool: "YCSB", Test: "A", Clients: 4, Pipeline: 1, PerSecond: 10 * factor, P50: 1, P99: 2, Failed: 1},
			Row{Side: SideRedis, Round: round, Tool: "YCSB", Test: "A", Clients: 4, Pipeline: 1, PerSecond: 40, P50: 3, P99: 4})
	}
	text := Markdown(cfg, rows)
	require.Contains(t, text, "| YCSB | A | 4 | 1 | 20 | 40 | 0.50 | 1.00, 2.00 | 3.00, 4.00 |\n")
	require.Contains(t, text, "kvdemo is slower in 1 of 1 rows. Operations that failed: 2.")
}

func TestConfigNamesEveryMistake(t *testing.T) {
	err := Config{YCSB: YCSB{Size: 2 << 20, Time: -time.Second}}.Validate()
	for _, want := range []string{"--nodes: 0, want 1 to 9", "--rounds: 0", "--requests: 0", "--records: 0", "--clients: 0", "--size: 2097152, want 1 to 1048576", "--time: -1s"} {
		require.ErrorContains(t, err, want)
	}
}
