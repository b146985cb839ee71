// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
)

// Crowds. Messages on a connection arrive in order, so under jitter each is as late
// as the latest of those just before it. Where many are under way, that is far later
// than a heartbeat, which comes alone. Whoever takes this for what bytes did learns
// that the interface is always busy, however little is sent.
//
// How late it is follows from two things that can be seen: how long jitter is, and how
// many messages are sent in that time. If each further delay is as much less likely
// again, the latest of k is later than one alone by jitter times the logarithm of k.
//
// How long jitter is shows in how much delays vary. What a queue at the interface
// does to them it does to all followers alike, so what they share is taken off: it is
// their covariance. A crowd on the way there and one on the way back vary together by
// roundTrip times the jitter of one way.
//
// Where delays share something there is a queue, and then the guess is made smaller: to
// overlook a queue is worse than to send few bytes. And it is bounded. For a connection's
// own cost half of it counts: to overlook a slow link is worse still.

const (
	crowdMemory = 0.5  // seconds over which that is averaged
	lateMemory  = 1.0  // and over which what is usual is
	roundTrip   = 1.81 // pi / sqrt(3)
	crowdFrom   = 2    // messages in the time of jitter that are no crowd yet
	crowdMost   = 0.8  // of the base; more is no jitter, but stalls
	crowdDoubt  = 0.5  // of what delays share is taken off the guess
)

// average is a mean of late, of all there is as long as that is little.
type average struct{ value, count, at float64 }

func (v *average) add(x, now, memory float64) {
	v.count++
	v.value += (x - v.value) * max(1-math.Exp((v.at-now)/memory), 1/v.count)
	v.at = now
}

// unusual notes how much later than the base an answer was, and returns how much
// later than usual that is.
func (l *link) unusual(late, now float64) float64 {
	l.late.add(late, now, lateMemory)
	late -= l.late.value
	l.spread.add(late*late, now, crowdMemory)
	return late
}

// crowd learns from an entry that all have answered how late crowds are. The first
// entries tell nothing, nor does a single follower, which shares all with itself.
func (a *Policy) crowd(set *answerSet, now float64) {
	n := float64(len(a.links))
	if n < 2 {
		a.links[0].crowded = 0
		return
	}
	a.shared.add((set.late*set.late-set.squares)/(n*(n-1)), now, crowdMemory)
	if a.complete++; a.complete <= minSamples {
		return
	}
	each := a.choice.times[:0]
	for _, l := range a.links {
		each = append(each, l.spread.value)
	}
	slices.Sort(each)
	shared := max(0, a.shared.value)
	jitter := math.Sqrt(max(0, each[(len(each)-1)/2]-shared)) / roundTrip
	entries, _ := a.rates(now)
	crowd := 2 * jitter * math.Log(max(1, entries*jitter/crowdFrom))
	for _, l := range a.links {
		l.crowded = max(0, min(crowd, crowdMost*l.base)-crowdDoubt*math.Sqrt(shared))
	}
}
