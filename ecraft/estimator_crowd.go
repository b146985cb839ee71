// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"math"
	"slices"
)

// Crowds. Messages on a connection arrive in order, so under jitter each is as late
// as the latest of those just before it. Where many are under way, that is far later
// than a heartbeat, which comes alone. Whoever takes this for what bytes did learns
// that the interface is always busy, however little is sent.
//
// What jitter does shows where bytes do nothing: in how much later one follower
// answers an entry than another does. A queue at the interface delays all of them.
// So jitter can be told from a queue, but its delay is only guessed from that, and a
// queue that is no longer than the guess is not seen. Therefore the guess is bounded.

const (
	scatterMemory = 256     // entries over which scatter is averaged, about
	crowdFrom     = 4       // messages in the time of the scatter that are no crowd yet
	scatterMost   = 1.0 / 3 // of the base; more is no jitter, but stalls
	// crowdFactor is how many times that is put down to a crowd where the cost at
	// the interface is learnt. For a connection's own cost it is once: to overlook a
	// slow link is worse than to overlook a short queue, which grows and then shows.
	crowdFactor = 2
)

// scatter is how much later than the middle one a follower answers: on the average,
// and how far off that it is.
type scatter struct{ mean, off float64 }

// crowd learns from an entry that all have answered how late crowds are; middle is
// how long the middle answer took. The first entries tell nothing: what bytes took
// is taken off by a cost that is still a guess.
func (a *Adaptive) crowd(set *answerSet, middle, now float64) {
	a.complete++
	if a.complete <= minSamples {
		return
	}
	first := a.complete == minSamples+1
	gain := max(1.0/scatterMemory, 1/float64(a.complete-minSamples))
	each := a.choice.times[:0]
	for i, l := range a.links {
		later := set.took[i] - middle
		if first {
			l.scatter.mean = later
		}
		l.scatter.off += (math.Abs(later-l.scatter.mean) - l.scatter.off) * gain
		l.scatter.mean += (later - l.scatter.mean) * gain
		each = append(each, l.scatter.off)
	}
	slices.Sort(each)
	median := each[(len(each)-1)/2]
	entries, _ := a.rates(now)
	for _, l := range a.links {
		l.crowded = max(0, min(median, scatterMost*l.base)-crowdFrom/max(entries, 1))
	}
}
