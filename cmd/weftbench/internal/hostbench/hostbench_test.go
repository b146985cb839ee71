// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rows with a bound are measured twice as often.
func TestRounds(t *testing.T) {
	c := Config{Rounds: 5}
	require.Equal(t, 5, c.rounds(row{Clients: 1, Size: 1 << 10}))
	require.Equal(t, 3, c.rounds(row{Clients: 1, Size: 1 << 10, Rate: 200}))
	require.Equal(t, 3, c.rounds(row{Clients: 1, Size: 16}))
}

// The report names where a side costs more than it should.
func TestReportNamesWhereItIsBehind(t *testing.T) {
	row := row{Clients: 1, Size: 1 << 10}
	of := func(side string, perCall ...float64) *cell {
		return &cell{Side: side, Row: row, Calls: 1000, Elapsed: time.Second, PerCall: perCall}
	}
	r := &report{
		Config: Config{Sides: []Side{{Name: "a"}, {Name: "b"}}, Rounds: 3, ElectionTicks: 10, Tick: 50 * time.Millisecond},
		Cells:  []*cell{of("a", 12, 30, 11), of("b", 10, 10, 10)},
		Gaps:   []*gaps{{Side: "a", All: []time.Duration{600 * time.Millisecond}}},
		Disks:  []*disk{{Side: "a", Payload: 1 << 20, Log: 1, Total: 2}},
	}
	text := r.Section().Markdown()
	require.Contains(t, text, "More than 1.1 times the CPU of b: a at 1 KB x 1 (1.20).")
	require.Contains(t, text, "2.73 times apart in CPU/call (a at 1 KB x 1)")
	require.Contains(t, text, "| 1.20 | 1.20 to 1.20 |")
	require.Contains(t, text, "| a | 600 | 1.20 | 600 | 600 | 1 |")
	r.Cells[0].PerCall = []float64{10, 11, 9}
	require.Contains(t, r.Section().Markdown(), "No side used more than 1.1 times the CPU of b.")
}
