// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
)

// answered is the number of entries that are remembered until all followers have answered.
const answered = 64

const (
	// delayClip is the share of a trip that one answer may say about the follower's own delay, which is averaged over
	// delayMemory seconds or more.
	delayClip   = 0.5
	delayMemory = 0.25
)

// answerSet is the answers to an entry, without the time of bytes.
type answerSet struct {
	index uint64
	n     int
	took  []float64 // by link; 0: none yet

	// Sum, and sum of squares, of the answers' delays beyond the usual delay.
	late, squares float64
}

// answer notes an answer for the follower's own delay, and for the jitter: the delay of the k-th answer
// beyond the k-th shortest trip. An entry that waits for more answers pays more jitter.
func (a *Policy) answer(i int, m flight, now float64) {
	set := &a.answers[m.last%answered]
	if set.index > m.last {
		return // too old
	}
	if set.index < m.last {
		set.index, set.n = m.last, 0
	}
	if set.n == 0 {
		clear(set.took)
		set.late, set.squares = 0, 0
	}
	if set.took[i] != 0 {
		return
	}
	set.n++
	set.took[i] = max(now-m.sentAt-m.work, 1e-9)
	a.links[i].delays(set.took[i], now)
	late := a.links[i].unusual(m.late, now)
	set.late += late
	set.squares += late * late
	if set.n < len(a.links) {
		return
	}
	took, base := a.choice.sorted[:0], a.choice.times[:0]
	for j, l := range a.links {
		took = append(took, set.took[j])
		base = append(base, l.trip())
	}
	slices.Sort(took)
	slices.Sort(base)
	for k := range took {
		a.jitter[k] += (took[k] - base[k] - a.jitter[k]) * alphaJitter
	}
	a.crowd(set, now)
}

// delays learns the follower's own delay from an answer that took t, the time of bytes not included. One answer says no
// more than a part of the trip, and many answers that a single stall made late no more than the stall's time: a stall that
// comes seldom must not look like a follower that is always late.
func (l *link) delays(t, now float64) {
	most := l.trip() * delayClip
	gain := min(alphaJitter, 1-math.Exp((l.delayedAt-now)/delayMemory))
	l.delay = max(0, l.delay+min(max(t-l.trip(), -most), most)*gain)
	l.delayedAt = now
}

// trip is the time to the follower's answer to a message of few bytes, as answers came of late.
func (l *link) trip() float64 { return l.base + l.held + l.delay }

// wait is the jitter of the need-th answer if only of answers are to come. The k-th of few answers
// comes at about the time of the answer with the same rank among all: the second of two answers at
// the time of the third of four, or a little later.
func (a *Policy) wait(need, of int) float64 {
	all := len(a.jitter)
	rank := float64(need*(all+1))/float64(max(of, need)+1) - 1
	i := int(rank)
	if i >= all-1 {
		return a.jitter[all-1]
	}
	return a.jitter[i] + (a.jitter[i+1]-a.jitter[i])*(rank-float64(i))
}
