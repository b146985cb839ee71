// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"math"
	"math/rand/v2"
	"time"
)

// draws is a source of randomness that is a function of a seed, with the few
// distributions that a run needs.
type draws struct{ *rand.Rand }

// newDraws returns the stream with a number: streams of a seed are independent,
// so that drawing more from one leaves the others alone.
func newDraws(seed, stream uint64) draws {
	return draws{rand.New(rand.NewPCG(seed, stream))}
}

// chance reports true with the probability p.
func (d draws) chance(p float64) bool { return p > 0 && d.Float64() < p }

// between returns a number in [lo, hi].
func (d draws) between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

// scale returns a number in [lo, hi], each order of magnitude as likely as any
// other: rates of faults are drawn so, as rare and common ones find different
// things.
func (d draws) scale(lo, hi float64) float64 {
	return lo * math.Exp(d.Float64()*math.Log(hi/lo))
}

// span returns a time in [lo, hi], drawn like scale.
func (d draws) span(lo, hi time.Duration) time.Duration {
	return time.Duration(d.scale(float64(lo), float64(hi)))
}

// within returns a time in [lo, hi], drawn evenly.
func (d draws) within(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Float64()*float64(hi-lo))
}

// wait returns the time to the next of events that come once in mean on average.
func (d draws) wait(mean time.Duration) time.Duration {
	return time.Duration(d.ExpFloat64() * float64(mean))
}

// pick returns one of the values.
func pick[T any](d draws, values ...T) T { return values[d.IntN(len(values))] }
