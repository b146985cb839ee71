// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFewAnswersAreWaitedForLonger checks that the k-th answer comes the later the fewer followers
// are to answer.
func TestFewAnswersAreWaitedForLonger(t *testing.T) {
	a := &Policy{jitter: []float64{1, 2, 3, 4}}
	for k := 1; k <= 4; k++ {
		require.InDelta(t, float64(k), a.wait(k, 4), 1e-12, "all are to answer")
	}
	require.InDelta(t, 10.0/3, a.wait(2, 2), 1e-12)
	require.InDelta(t, 2.5, a.wait(2, 3), 1e-12)
	require.InDelta(t, 4, a.wait(4, 3), 1e-12, "more than can be is as many as can be")
	one := &Policy{jitter: []float64{5}}
	require.InDelta(t, 5, one.wait(1, 1), 1e-12)
}

// TestFollowersThatStandStillAreNotCountedOn has two of four followers answer late again and again, as processes do that
// stand still for some milliseconds in every few. Their delays are theirs alone: entries go to the other two, and are
// expected no later than these answer.
func TestFollowersThatStandStillAreNotCountedOn(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	counted := 0
	for i := range 4000 {
		for k := range 2 {
			w.links[k].trip = near.trip + time.Duration((i*7+k*3)%10)*time.Millisecond/2
		}
		p := w.load(16<<10, 2*time.Millisecond, 2*time.Millisecond)
		if i < 1000 {
			continue
		}
		if w.units[0]+w.units[1] > 0 {
			counted++
		}
		require.Less(t, p.Predicted, 2*time.Millisecond)
	}
	require.Less(t, counted, 30, "of 3000 entries")
}

// TestStallIsNoDelayOfAFollower checks that a stall of 50 ms, whose end all answers of the time wait for, says little about
// the next answers.
func TestStallIsNoDelayOfAFollower(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	w.load(16<<10, 2*time.Millisecond, time.Second)
	for i := range 40 {
		w.links[1].trip = time.Duration(50-i) * time.Millisecond
		w.propose(16 << 10)
		w.run(w.now + time.Millisecond)
	}
	w.links[1].trip = near.trip
	w.run(w.now + 60*time.Millisecond)
	require.Less(t, w.a.links[1].delay, near.trip.Seconds()/10)
}
