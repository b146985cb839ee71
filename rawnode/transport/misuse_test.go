// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

func TestSendWaitWithEndedContextSendsNothing(t *testing.T) {
	a, _, _, boxB := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.SendWait(ctx, appends(1, 2, 1, 10)), context.Canceled)
	require.NoError(t, a.SendWait(t.Context(), appends(1, 2, 2, 10)))
	require.EqualValues(t, 2, boxB.next(t).Body.(wire.Raft).GetIndex())
}
