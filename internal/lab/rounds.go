// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// LeastRounds is the least number of rounds whose medians may go into a document. One round of
// this machine does not tell a gain from chance.
const LeastRounds = 5

// errFewRounds says that a document needs more rounds.
var errFewRounds = errors.New("medians of fewer rounds are chance")

// Publishable returns an error if a document is asked for, and the rounds are too few for one.
func Publishable(path string, rounds int) error {
	if path == "" || rounds >= LeastRounds {
		return nil
	}
	return fmt.Errorf("--out: %d rounds, want %d or more: %w; without --out the report is printed", rounds, LeastRounds, errFewRounds)
}

// Turns measures every side once in each round. Each round begins with another side, so that no
// side always follows the same one.
func Turns(rounds, sides int, measure func(round, side int) error) error {
	for round := range rounds {
		for i := range sides {
			if err := measure(round, (i+round)%sides); err != nil {
				return err
			}
		}
	}
	return nil
}

// ErrDisturbed says that a measurement is not the one that was meant, because an election or other
// work of the machine came between.
var ErrDisturbed = errors.New("the machine is too busy: stop other work, or measure for longer")

// Again measures until nothing disturbs the measurement, 5 times at most.
func Again[T any](measure func() (T, error)) (x T, err error) {
	for range 5 {
		if x, err = measure(); !errors.Is(err, ErrDisturbed) {
			break
		}
	}
	return x, err
}

// Rounds are the values of a figure, one a round.
type Rounds []float64

// RoundsOf returns a figure of each measurement.
func RoundsOf[T any](measured []T, figure func(T) float64) (all Rounds) {
	for _, m := range measured {
		all = append(all, figure(m))
	}
	return all
}

// MedianTime returns the median of a time of each measurement.
func MedianTime[T any](measured []T, of func(T) time.Duration) time.Duration {
	return time.Duration(RoundsOf(measured, func(m T) float64 { return float64(of(m)) }).Median())
}

// Percentiles returns the medians of two percentiles in milliseconds as text, or "-" if the larger one is 0: nothing was
// measured.
func Percentiles[T any](measured []T, low, high func(T) float64) string {
	most := RoundsOf(measured, high).Median()
	if most == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f, %.2f", RoundsOf(measured, low).Median(), most)
}

// Ratio divides the values of a side by those of another, round by round: noise that comes and
// goes hits both sides of a round.
func (r Rounds) Ratio(base Rounds) (all Rounds) {
	for i := range min(len(r), len(base)) {
		all = append(all, r[i]/base[i])
	}
	return all
}

// Median returns the median, or the mean of the two values in the middle; 0 without rounds.
func (r Rounds) Median() float64 {
	n := len(r)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// GeometricMean returns the mean of ratios above 0; 0 without any.
func GeometricMean(ratios []float64) float64 {
	if len(ratios) == 0 {
		return 0
	}
	logs := 0.0
	for _, x := range ratios {
		logs += math.Log(x)
	}
	return math.Exp(logs / float64(len(ratios)))
}

// Middle returns the bounds of the middle half of the values: a quarter of them lie below, and a
// quarter above.
func (r Rounds) Middle() (low, high float64) {
	if len(r) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(r))
	n := len(sorted) - 1
	return sorted[(n+2)/4], sorted[n-(n+2)/4]
}

// Text returns the median and, in parentheses, the least and the greatest value. A value alone has
// no spread.
func (r Rounds) Text(format string) string {
	text := fmt.Sprintf(format, r.Median())
	if len(r) > 1 {
		text += fmt.Sprintf(" ("+format+" to "+format+")", slices.Min(r), slices.Max(r))
	}
	return text
}
