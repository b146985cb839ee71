// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
)

// Crowds. Messages on a connection arrive in order, so under jitter each message is as late as the
// latest message just before. With many messages under way, the delay is far longer than the delay
// of a heartbeat, which travels alone. A policy that took this delay for the time of bytes would
// learn that the interface is always busy, however few bytes are sent.
//
// The delay of a crowd follows from two quantities that can be measured: the length of jitter, and
// the number of messages sent in that time. If each further delay is less likely by the same
// factor, the latest of k messages is later than a single message by jitter times the logarithm of
// k.
//
// The length of jitter shows in the variance of delays. A queue at the interface delays all
// followers alike, so the followers' common part, their covariance, is taken off. A crowd on the
// way there and a crowd on the way back vary together by roundTrip times the jitter of a single
// direction.
//
// Delays with a common part are the sign of a queue, and then the estimate is made smaller, because
// to overlook a queue is worse than to send few bytes. The estimate is also bounded. For a
// connection's own cost, half of the estimate counts, because to overlook a slow link is worse
// still.

const (
	crowdMemory = 0.5  // seconds over which the variance of delays is averaged
	lateMemory  = 1.0  // seconds over which the usual delay is averaged
	roundTrip   = 1.81 // pi / sqrt(3)
	crowdFrom   = 2    // messages in the time of jitter that are not a crowd yet
	crowdMost   = 0.8  // of the base; a longer delay is a stall, not jitter
	crowdDoubt  = 0.5  // share of the common delay that is taken off the estimate
)

// average is a mean of recent values, or of all values as long as there are few.
type average struct{ value, count, at float64 }

func (v *average) add(x, now, memory float64) {
	v.count++
	v.value += (x - v.value) * max(1-math.Exp((v.at-now)/memory), 1/v.count)
	v.at = now
}

// unusual notes the delay of an answer beyond the base, and returns the delay beyond the usual
// delay.
func (l *link) unusual(late, now float64) float64 {
	l.late.add(late, now, lateMemory)
	late -= l.late.value
	l.spread.add(late*late, now, crowdMemory)
	return late
}

// crowd learns the delay of crowds from an entry that all followers have answered. The first
// entries tell nothing, nor does a single follower, whose common part is its whole delay.
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
