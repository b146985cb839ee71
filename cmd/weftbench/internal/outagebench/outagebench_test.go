// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package outagebench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	good := Config{Nodes: []int{3}, Egress: 125e6, Size: 1 << 10, Load: []float64{0}, Rounds: 1, Away: time.Second, Before: time.Second}
	require.NoError(t, good.Validate())
	err := Config{Nodes: []int{10}, Egress: 1, Size: 5 << 20, Load: []float64{1.5}, Before: time.Millisecond, Retain: -1}.Validate()
	for _, says := range []string{
		"--nodes: [10], want numbers of 3 to 9", "--egress: 1, want", "--size: 5242880, want", "--load: [1.5], want shares of 0 to 1",
		"--rounds: 0, want 1 to 1000", "--away: 0s, want 1s to 1h", "--before: 1ms, want", "--retain: -1, want",
	} {
		require.ErrorContains(t, err, says)
	}
}

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
