// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitWithoutABoundIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&lines, nil))
		done := timed(logger, "opening the group", "group", 7)
		time.Sleep(slowAfter - 1)
		done()
		time.Sleep(slowAfter)
		require.Empty(t, lines.String(), "what ends in time is not logged")
		done = timed(logger, "opening the group", "group", 7)
		time.Sleep(slowAfter + 5*time.Second)
		synctest.Wait()
		require.Contains(t, lines.String(), `msg="opening the group has not ended: does the disk answer?" group=7 for=10s`)
		done()
		require.Contains(t, lines.String(), `msg="opening the group has ended" group=7 after=15s`)
	})
}

// A keeper that cannot end, because the disk does not answer, does not keep Close beyond its
// context; a later Close tries again.
func TestCloseKeepsItsContextWhileTheBookIsStuck(t *testing.T) {
	n, err := Open(Options{Cluster: 7, ID: 1, Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	answers := make(chan struct{})
	n.background.Go(func() { <-answers })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = n.Close(ctx)
	require.ErrorIs(t, err, ErrNotEnded)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(answers)
	require.NoError(t, n.Close(t.Context()))
}
