// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrowds checks that delays that differ between followers are jitter, and make crowds late
// where many messages are under way, while a delay of all followers alike is a queue.
func TestCrowds(t *testing.T) {
	const base, jitter = 0.010, 0.0025
	run := func(rate, jitter, queue float64) *Policy {
		rng := rand.New(rand.NewPCG(1, 2))
		a := New(Options{})
		for id := range uint64(4) {
			a.Joined(id+2, true, 0)
		}
		for _, l := range a.links {
			l.base, l.seen = base, true
		}
		now := 0.0
		var there, back [4]float64 // when the latest of all so far came
		for i := range uint64(20_000) {
			now += 1 / rate
			a.Proposed(i+1, 4<<10, inSeconds(now))
			waited := queue * (1 + math.Sin(now*60)) / 2
			for j := range a.links {
				there[j] = max(there[j], now+waited+jitter*rng.ExpFloat64())
				back[j] = max(back[j], there[j]+jitter*rng.ExpFloat64())
				late := back[j] - now - 2*jitter // which heartbeats have as well
				a.answer(j, flight{last: i + 1, sentAt: now - base - late, late: late}, now)
			}
		}
		return a
	}
	const rate = 10_000
	crowd := 2 * jitter * math.Log(rate*jitter*0.65) // the latest of Poisson arrivals, about
	for _, l := range run(rate, jitter, 0).links {
		require.InDelta(t, crowd, l.late.value, 0.2*crowd)
		require.InDelta(t, 0.7*crowd, l.crowded, 0.3*crowd)
		require.LessOrEqual(t, l.crowded, crowdMost*base)
	}
	for _, l := range run(rate, jitter, 8*jitter).links {
		require.Less(t, l.crowded, crowd/2, "where there is a queue less is guessed")
	}
	for _, l := range run(rate, 0, 8*jitter).links {
		require.Zero(t, l.crowded, "a queue is no crowd")
	}
	for _, l := range run(0.5/jitter, jitter, 0).links {
		require.Less(t, l.crowded, crowd/10, "few messages are no crowd")
	}
	for _, l := range run(rate, 20*base, 0).links {
		require.LessOrEqual(t, l.crowded, crowdMost*base)
	}
	a := run(rate, jitter, 0)
	a.Left(2)
	require.Zero(t, a.complete, "other followers, other delays")
	require.Zero(t, a.shared)
}

// TestCrowdOfOne checks a single follower, which has no other follower for comparison.
func TestCrowdOfOne(t *testing.T) {
	a := New(Options{})
	a.Joined(2, true, 0)
	a.links[0].base, a.links[0].seen = 0.010, true
	for i := range uint64(1000) {
		now := float64(i+1) * 1e-4
		a.Proposed(i+1, 4<<10, inSeconds(now))
		a.answer(0, flight{last: i + 1, sentAt: now - 0.015, late: 0.005 * float64(i%3)}, now)
	}
	require.Zero(t, a.links[0].crowded)
}
