// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node outlives the terminal that it was started from.
func TestHangupDoesNotEndANode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 1, 1, "--tick", "10ms")
	f.do("put", "before", "v")
	require.NoError(t, f.nodes[1].cmd.Process.Signal(syscall.SIGHUP))
	for range 5 {
		f.do("put", "after", "v")
	}
	f.kill(1)
}
