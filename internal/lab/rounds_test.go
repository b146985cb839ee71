// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFewRoundsGoIntoNoDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	for rounds := range LeastRounds {
		s := &Section{Verb: "x", Rounds: rounds}
		require.ErrorIs(t, s.Write(nil, path, false), errFewRounds)
		require.NoFileExists(t, path)
	}
	require.NoError(t, (&Section{Verb: "x", Rounds: LeastRounds}).Write(nil, path, false))
	require.FileExists(t, path)
	require.ErrorContains(t, Publishable("doc.md", 3), "--out: 3 rounds, want 5 or more")
	require.NoError(t, Publishable("", 1), "it is printed")
}

func TestEachRoundBeginsWithAnotherSide(t *testing.T) {
	var order [][2]int
	require.NoError(t, Turns(2, 3, func(round, side int) error {
		order = append(order, [2]int{round, side})
		return nil
	}))
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {1, 0}}, order)
	stop := errors.New("stop")
	require.ErrorIs(t, Turns(2, 3, func(int, int) error { return stop }), stop)
}

func TestDisturbedMeasurementIsMadeAgain(t *testing.T) {
	made := 0
	x, err := Again(func() (int, error) {
		if made++; made < 3 {
			return 0, ErrDisturbed
		}
		return made, nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, x)
	made = -10
	_, err = Again(func() (int, error) { made++; return 0, ErrDisturbed })
	require.ErrorIs(t, err, ErrDisturbed)
	require.Equal(t, -5, made, "five attempts")
}

func TestMedianAndSpreadOfRounds(t *testing.T) {
	require.Zero(t, Rounds{}.Median())
	require.Equal(t, 2.0, Rounds{9, 1, 2}.Median())
	require.Equal(t, 2.5, Rounds{3, 1, 2, 9}.Median())
	middle := func(r Rounds) [2]float64 { low, high := r.Middle(); return [2]float64{low, high} }
	require.Equal(t, [2]float64{2, 4}, middle(Rounds{5, 1, 4, 2, 3}))
	require.Equal(t, [2]float64{1, 1}, middle(Rounds{1}))
	require.Equal(t, [2]float64{1, 2}, middle(Rounds{2, 1}))
	require.Equal(t, "2.0 (1.0 to 9.0)", Rounds{9, 1, 2}.Text("%.1f"))
	require.Equal(t, "2", Rounds{2}.Text("%.0f"))
	require.Equal(t, Rounds{2, 0.5}, Rounds{4, 2}.Ratio(Rounds{2, 4}))
}

func TestMeanOfRatiosIsGeometric(t *testing.T) {
	require.InDelta(t, 1, GeometricMean([]float64{0.5, 2}), 1e-9)
	require.InDelta(t, 2, GeometricMean([]float64{2}), 1e-9)
	require.Zero(t, GeometricMean(nil))
}
