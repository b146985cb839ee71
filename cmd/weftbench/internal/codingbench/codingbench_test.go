// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package codingbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

func TestReport(t *testing.T) {
	cell := func(side string, egress, size, calls int) *Cell {
		return &Cell{
			Side: side, Nodes: 3, Egress: egress, Size: size, Clients: 16, Calls: int64(calls), PerSecond: lab.Rounds{float64(calls), float64(calls) / 2, float64(calls) * 2}, Elapsed: time.Second,
			LeaderCPU: time.Duration(calls) * 20 * time.Microsecond, LeaderBytes: uint64(2 * calls * size),
		}
	}
	s := Report(Config{Rounds: 3, Time: time.Second}, []*Cell{
		cell(full, 0, 512, 1000), cell(coded, 0, 512, 850),
		cell(full, 0, 1024, 1000), cell(coded, 0, 1024, 1050),
		cell(full, 125e6, 64<<10, 500), cell(coded, 125e6, 64<<10, 1000),
	})
	require.Len(t, s.Tables, 2)
	require.Equal(t, "3 nodes, egress no bound (full → coded)", s.Tables[0].Title)
	require.Equal(t, "3 nodes, egress 1 Gbit/s (full → coded)", s.Tables[1].Title)
	require.Equal(t, []string{"512 B", "16", "1000 → 850", "0.85 (0.85 to 0.85)"}, s.Tables[0].Rows[1][:4])
	require.Equal(t, []string{"20 → 20", "0 → 0", "2.00 → 2.00", "0.00 → 0.00"}, s.Tables[0].Rows[1][6:])
	require.Equal(t, []string{
		"All loads together: 0.94 times the calls of full copies (geometric mean).",
		"Full copies are as good, within 10%, at: 1 KB x 16.", "Full copies are more than 10% better at: 512 B x 16 (0.85).",
	}, s.Tables[0].Notes)
	require.Equal(t, []string{"All loads together: 2.00 times the calls of full copies (geometric mean).", "Coding gets more than 10% more calls through at: 64 KB x 16."}, s.Tables[1].Notes)
}
