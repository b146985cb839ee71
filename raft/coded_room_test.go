// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForgottenEntriesWait: what was forgotten for lack of room is expected again in
// the next tick, or once something is applied.
func TestForgottenEntriesWait(t *testing.T) {
	c := codingNode(t, Coding{}).coded
	require.True(t, c.mayExpect(5))
	c.noRoomFrom, c.noRoomTick = 5, c.ticks
	require.True(t, c.mayExpect(4))
	require.False(t, c.mayExpect(5))
	c.tick()
	require.True(t, c.mayExpect(5))
	c.noRoomTick = c.ticks
	require.False(t, c.mayExpect(6))
	c.applied(1)
	require.True(t, c.mayExpect(6))
}
