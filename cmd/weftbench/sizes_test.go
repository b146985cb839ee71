// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	var s sizes
	require.NoError(t, s.Set("16,1KiB,1536,64KiB,1MiB,0"))
	require.Equal(t, sizes{16, 1 << 10, 1536, 64 << 10, 1 << 20, 0}, s)
	require.Equal(t, "16,1KiB,1536,64KiB,1MiB,0", s.String())
	for _, bad := range []string{"", "1KB", "-1", "1,", "2147483648", "2097152KiB", "x"} {
		require.ErrorContains(t, s.Set(bad), "want a number of bytes", bad)
	}
	require.Len(t, s, 6, "a bad value changes nothing")
}
