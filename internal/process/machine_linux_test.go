// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMachineTimeIsReadFromTheFirstLine(t *testing.T) {
	got := parseMachineTime("cpu  10 1 4 470 30 2 3 5 7 9")
	require.Equal(t, Machine{Busy: (10 + 1 + 4 + 2 + 3 + 5) * machineTick, All: 525 * machineTick}, got)
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "cpu 1 2 3 x 5 6 7 8"} {
		require.Zero(t, parseMachineTime(bad), bad)
	}
	require.Positive(t, MachineTime().All, "this machine has run for a time")
}
