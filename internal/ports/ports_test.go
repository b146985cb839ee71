// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFree(t *testing.T) {
	addresses, err := Free(20)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, address := range addresses {
		seen[address] = true
		host, _, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", host)
	}
	require.Len(t, seen, 20)
}
