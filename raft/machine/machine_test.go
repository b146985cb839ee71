// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/raft/machine"
)

func TestCodingTakesClockAndBusy(t *testing.T) {
	var clock raft.Clock = machine.Clock{}
	before := clock.Now()
	require.Positive(t, before)
	require.GreaterOrEqual(t, clock.Now(), before)
	coding := raft.Coding{Busy: machine.Busy}
	require.GreaterOrEqual(t, coding.Busy(), 0.0)
	require.LessOrEqual(t, coding.Busy(), 1.0)
}
