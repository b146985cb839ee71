// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostsAreIPAddressesAndNames(t *testing.T) {
	for _, host := range []string{"localhost", "10.0.0.1", "::1", "fe80::1%eth0", "node-1.example.org.", "node_1", "xn--bcher-kva.example"} {
		require.True(t, IsHost(host), host)
	}
	for _, host := range []string{"", "\xff", "a\x00b", "a b", "a\nb", "\x1b[2J", "a/b", "a@b", "bücher.example", "fe80::1%\n", "a b.c", strings.Repeat("a", maxHost+1)} {
		require.False(t, IsHost(host), "%q", host)
	}
}
