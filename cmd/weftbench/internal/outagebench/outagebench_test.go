// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package outagebench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	phase := Phase{Took: 2 * time.Second, Calls: 100, P50: 5 * time.Millisecond, P99: 7 * time.Millisecond, Max: 9 * time.Millisecond}
	twice := phase
	twice.Calls *= 2
	s := Report(Config{Egress: 125e6, Size: 64 << 10, Rounds: 2}, []Row{
		{Nodes: 3, Side: "off", Load: 0.5, Before: phase, Away: phase, Back: phase, Missed: 7, Sent: 3.666},
		{Nodes: 3, Side: "off", Load: 0.5, Before: twice, Away: phase, Back: phase, Missed: 7, Sent: 3.666, Round: 1},
		{Nodes: 3, Side: "on", Before: phase, Away: phase, Back: phase},
	})
	require.Equal(t, []string{"3", "50%", "off", "75 (50 to 100)", "50 (50 to 50)", "50 (50 to 50)", "5 / 7 / 9", "5 / 7 / 9", "5 / 7 / 9", "2.0 s", "7", "3.67"}, s.Tables[0].Rows[1])
	require.Equal(t, "closed", s.Tables[0].Rows[2][1])
}
