// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFitFindsFactorsAndNoneBelowZero(t *testing.T) {
	counts := [][]float64{{1, 2, 5}, {3, 1, 5}, {2, 2, 7}, {9, 1, 1}, {4, 4, 4}}
	var measured []float64
	for _, c := range counts {
		measured = append(measured, 3*c[0]+0.5*c[1])
	}
	require.InDeltaSlice(t, []float64{3, 0.5, 0}, Fit(counts, measured), 1e-6)
	for i, c := range counts {
		measured[i] = 3*c[0] - 0.1*c[1] // a count that costs less than nothing
	}
	for _, f := range Fit(counts, measured) {
		require.GreaterOrEqual(t, f, 0.0)
	}
	require.Nil(t, Fit(nil, nil))
}
