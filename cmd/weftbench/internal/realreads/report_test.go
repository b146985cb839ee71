// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The report names each measure in which rosters are not first, and in which etcd is ahead.
func TestReportNamesWhereRostersAreNotFirst(t *testing.T) {
	row := func(network, policy string, rate float64, read, write time.Duration) Row {
		return Row{Network: network, Policy: policy, Rate: rate, ReadMean: read * time.Millisecond, WriteMean: write * time.Millisecond}
	}
	require.Equal(t, []string{
		"- wan, ops a second: etcd, with 200, is ahead of ReadIndex (190).",
		"- wan, ops a second: rosters are ahead of etcd, 1700 beside 200.",
		"- wan, reads: rosters are ahead of etcd, 8.0 ms beside 100.0 ms.",
		"- wan, writes: etcd, with 70.0 ms, is ahead of roster (90.0 ms) and roster, notes (80.0 ms).",
		"- wan, writes: ReadIndex, with 60.0 ms, is ahead of rosters (80.0 ms).",
	}, notFirst([]Row{
		row("wan", "etcd", 200, 100, 70), row("wan", Serializable, 2000, 1, 50), row("wan", "ReadIndex", 190, 100, 60), row("wan", "roster", 1500, 9, 90), row("wan", "roster, notes", 1700, 8, 80),
	}))
	require.Empty(t, notFirst([]Row{row("geo", "ReadIndex", 1, 9, 9), row("geo", "roster", 2, 8, 8)}))
	require.Equal(t, []string{"- geo, reads: quorum read, with 3.0 ms, is ahead of rosters (8.0 ms)."},
		notFirst([]Row{row("geo", "quorum read", 1, 3, 9), row("geo", "roster", 2, 8, 8)}))
}
