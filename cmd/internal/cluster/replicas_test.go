// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferencesOfReplicasAreNamed(t *testing.T) {
	want, held := map[string][]byte{"k": {1}, "l": {1}}, map[string][]byte{"k": {2}, "m": {1}}
	require.NoError(t, Compare(want, want))
	for _, text := range []string{"k has another value", "l is missing", "m should not be there"} {
		require.ErrorContains(t, Compare(want, held), text)
	}
	var d Differences
	require.NoError(t, d.Err())
	for range mostNamed + 3 {
		d.Add("x")
	}
	require.ErrorContains(t, d.Err(), "and 3 more")
}
