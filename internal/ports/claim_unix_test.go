// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ports

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortsAreClaimedOnce(t *testing.T) {
	const port = 1 // outside of the range of Free
	t.Setenv("TMPDIR", t.TempDir())
	require.True(t, claim(port))
	require.False(t, claim(port), "by this process")
	held := claims.files[port]
	claims.files[port] = nil
	require.False(t, claim(port), "by another process, as the lock tells")
	require.NoError(t, held.Close())
	require.True(t, claim(port), "after that process has ended")
	t.Cleanup(func() { require.NoError(t, claims.files[port].Close()); delete(claims.files, port) })
}
