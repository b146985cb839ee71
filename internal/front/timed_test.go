// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"bytes"
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
		done := Timed(logger, "opening the group", "group", 7)
		time.Sleep(slowAfter - 1)
		done()
		time.Sleep(slowAfter)
		require.Empty(t, lines.String(), "what ends in time is not logged")
		done = Timed(logger, "opening the group", "group", 7)
		time.Sleep(slowAfter + 5*time.Second)
		synctest.Wait()
		require.Contains(t, lines.String(), `msg="opening the group has not ended: does the disk answer?" group=7 for=10s`)
		done()
		require.Contains(t, lines.String(), `msg="opening the group has ended" group=7 after=15s`)
	})
}
