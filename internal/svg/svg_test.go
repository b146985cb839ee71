// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChartsAreWellFormedWhateverTheFigures(t *testing.T) {
	for name, ch := range map[string]Chart{
		"empty":     {Title: "a < b"},
		"bars":      {Labels: []string{"x & y", "z"}, Series: []Series{{Name: "one", Y: []float64{1, math.NaN()}}, {Name: "short", Y: []float64{2}}}},
		"log":       {LogX: true, LogY: true, Series: []Series{{X: []float64{0, 1, 1000}, Y: []float64{1, -1, 1e6}}}},
		"one point": {Series: []Series{{X: []float64{5}, Y: []float64{0}}}},
		"infinite":  {Series: []Series{{X: []float64{5, 6}, Y: []float64{math.Inf(1), 3}}}},
	} {
		got, err := ch.SVG()
		require.NoError(t, err, name)
		require.NotContains(t, string(got), "NaN", name)
		require.NotContains(t, string(got), "Inf", name)
	}
}

func TestBarIsAsHighAsItsFigure(t *testing.T) {
	ch := Chart{Labels: []string{"a"}, Series: []Series{{Name: "whole", Y: []float64{10}}, {Name: "half", Y: []float64{5}}}}
	got, err := ch.SVG()
	require.NoError(t, err)
	require.Contains(t, string(got), `height="264.0"`)
	require.Contains(t, string(got), `height="132.0"`)
	require.Equal(t, 2, strings.Count(string(got), "<rect x=\"536\""), "the legend")
}

func TestFirstLineIsAboveTheOthers(t *testing.T) {
	line := []float64{1 << 10, 1 << 20}
	ch := Chart{LogX: true, Bytes: true, Series: []Series{{Name: "first", X: line, Y: line}, {Name: "second", X: line, Y: line}}}
	got, err := ch.SVG()
	require.NoError(t, err)
	first, second := strings.Index(string(got), color(0)+`" stroke-width="2"`), strings.Index(string(got), color(1)+`" stroke-width="4.5"`)
	require.Positive(t, second)
	require.Greater(t, first, second)
	require.Contains(t, string(got), ">64 KB</text>")
}
