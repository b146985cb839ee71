// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortsAreClaimedOnce(t *testing.T) {
	const port = 1 // outside of the range of Free
	require.True(t, claim(port))
	require.False(t, claim(port))
	require.NoError(t, claims.sockets[port].Close())
	require.True(t, claim(port), "after the end of the process that had it")
	require.NoError(t, claims.sockets[port].Close())
}
