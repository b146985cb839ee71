// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ycsb

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	row, err := r.of("A")
	require.NoError(t, err)
	require.Equal(t, Result{Workload: "A", PerSecond: 4021.8, P50: 0.25, P99: 1.9, WriteP50: 0.8, WriteP99: 5, Failed: 4}, row)
	_, err = parseYCSB(strings.NewReader("Exception in thread"))
	require.ErrorContains(t, err, "printed no throughput: \"Exception in thread\"")
	r, err = parseYCSB(strings.NewReader("[OVERALL], Throughput(ops/sec), 1\n[READ], Return=ERROR, 5\n"))
	require.NoError(t, err)
	_, err = r.of("A")
	require.ErrorContains(t, err, "no operation succeeded, and 5 failed")
}

func TestYCSBThatIsNotThereIsNamed(t *testing.T) {
	require.NoError(t, Client{}.Check())
	require.Error(t, Client{Dir: t.TempDir()}.Check())
}
