// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

// An end that hangs is begun once, is named, and is awaited again; its own error comes when it has come.
func TestEndThatHangsIsAwaitedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Ending
		begun, answers, failed := 0, make(chan struct{}), errors.New("failed")
		end := func() error { begun++; <-answers; return failed }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			err := e.Await(ctx, "the disk", end)
			require.ErrorIs(t, err, rawnode.ErrNotEnded)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "the disk")
			require.False(t, e.Ended())
		}
		close(answers)
		require.ErrorIs(t, e.Await(ctx, "the disk", end), failed)
		require.True(t, e.Ended())
		require.Equal(t, 1, begun)
	})
}

// A free turn counts more than a context that has ended, and another's turn does not.
func TestTurnIsTakenOrRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	turn := make(chan struct{}, 1)
	require.NoError(t, TakeTurn(ctx, turn))
	require.ErrorIs(t, TakeTurn(ctx, turn), rawnode.ErrNotEnded)
	<-turn
	require.NoError(t, TakeTurn(ctx, turn))
}
