// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math"
	"math/rand/v2"
	"time"
)

// Draws is a source of randomness that is a function of a seed, with the few
// distributions that a run needs.
type Draws struct{ *rand.Rand }

// NewDraws returns the stream with a number: streams of a seed are independent,
// so that drawing more from one leaves the others alone.
func NewDraws(seed, stream uint64) Draws {
	return Draws{rand.New(rand.NewPCG(seed, stream))}
}

// Chance reports true with the probability p. It draws nothing if p is 0.
func (d Draws) Chance(p float64) bool { return p > 0 && d.Float64() < p }

// Between returns a number in [lo, hi].
func (d Draws) Between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

// Scale returns a number in [lo, hi], each order of magnitude as likely as any
// other: rates of faults are drawn so, as rare and common ones find different
// things.
func (d Draws) Scale(lo, hi float64) float64 {
	return lo * math.Exp(d.Float64()*math.Log(hi/lo))
}

// Span returns a time in [lo, hi], drawn like Scale.
func (d Draws) Span(lo, hi time.Duration) time.Duration {
	return time.Duration(d.Scale(float64(lo), float64(hi)))
}

// Within returns a time in [lo, hi], drawn evenly.
func (d Draws) Within(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Float64()*float64(hi-lo))
}

// Wait returns the time to the next of events that come once in mean on average.
func (d Draws) Wait(mean time.Duration) time.Duration {
	return time.Duration(d.ExpFloat64() * float64(mean))
}

// Rate draws, for a fault that a run has with a chance, how likely it is: a
// number like Scale's, or 0 if the run does not have it.
func (d Draws) Rate(chance, lo, hi float64) float64 {
	if !d.Chance(chance) {
		return 0
	}
	return d.Scale(lo, hi)
}

// Every draws, for a fault that a run has with a chance, the mean time between
// two: a time like Span's, or 0 if the run does not have it.
func (d Draws) Every(chance float64, lo, hi time.Duration) time.Duration {
	if !d.Chance(chance) {
		return 0
	}
	return d.Span(lo, hi)
}

// Pick returns one of the values.
func Pick[T any](d Draws, values ...T) T { return values[d.IntN(len(values))] }
