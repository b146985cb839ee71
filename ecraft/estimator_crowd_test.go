// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrowds: what makes answers differ is jitter, and makes crowds late where many
// messages are under way. What delays all of them alike is a queue, and never does.
func TestCrowds(t *testing.T) {
	const base, jitter = 0.010, 0.002
	run := func(rate, jitter, queue float64) *Adaptive {
		rng := rand.New(rand.NewPCG(1, 2))
		a := NewAdaptive(AdaptiveOptions{})
		for id := range uint64(4) {
			a.Joined(id+2, 0)
		}
		for _, l := range a.links {
			l.base, l.seen = base, true
		}
		now := 0.0
		for i := range uint64(1000) {
			now += 1 / rate
			a.Proposed(i+1, 4<<10, inSeconds(now))
			waited := queue * rng.Float64()
			for j := range a.links {
				took := base + waited + jitter*rng.ExpFloat64()
				a.answer(j, flight{last: i + 1, sentAt: now - took}, now)
			}
		}
		return a
	}
	for _, l := range run(10_000, jitter, 0).links {
		require.InDelta(t, 0.6*jitter, l.crowded, 0.3*jitter)
	}
	for _, l := range run(10_000, jitter, 20*jitter).links {
		require.InDelta(t, 0.6*jitter, l.crowded, 0.3*jitter, "a queue makes no difference")
	}
	for _, l := range run(10_000, 0, 20*jitter).links {
		require.Zero(t, l.crowded, "a queue is no crowd")
	}
	for _, l := range run(crowdFrom/jitter/2, jitter, 0).links {
		require.Zero(t, l.crowded, "few messages are no crowd")
	}
	for _, l := range run(10_000, 20*base, 0).links {
		require.LessOrEqual(t, l.crowded, scatterMost*base)
	}
	a := run(10_000, jitter, 0)
	a.Left(2)
	require.Zero(t, a.complete, "other followers, other scatter")
}
