// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
