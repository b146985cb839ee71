// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues(t *testing.T) {
	short, long := values{}, values{largest: 64 << 10}
	require.Equal(t, "1.2", short.of("1.2"))
	require.Equal(t, "1.2", short.id([]byte("1.2")))
	require.Empty(t, long.of(""), "no value is no value")
	over, sizes := 0, map[int]bool{}
	for i := range 1000 {
		name := fmt.Sprintf("%d.%d", i%8, i)
		v := long.of(name)
		require.LessOrEqual(t, len(v), 64<<10)
		require.Equal(t, name, long.id([]byte(v)))
		if len(v) >= 1024 {
			over++
		}
		sizes[len(v)] = true
	}
	require.InDelta(t, 400, over, 150, "many are coded, many are not")
	require.Greater(t, len(sizes), 300)

	var v []byte
	for i := 0; len(v) < 1024; i++ {
		v = []byte(long.of(fmt.Sprintf("3.%d", i)))
	}
	for i := 0; i < len(v); i += 1 + len(v)/100 {
		v[i] ^= 1
		require.Contains(t, long.id(v), damaged, "byte %d", i)
		v[i] ^= 1
	}
	require.Contains(t, long.id(nil), damaged)
}
