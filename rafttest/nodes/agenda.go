// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"math"
	"math/rand/v2"
	"time"
)

// event is something that happens at an instant of virtual time. number breaks
// ties, so the order of events is total and a function of the seed.
type event struct {
	at     time.Duration
	number uint64
	happen func()
}

func (e event) before(o event) bool {
	return e.at < o.at || e.at == o.at && e.number < o.number
}

// agenda is the events to come, in a binary heap with the earliest at the top.
type agenda struct {
	now     time.Duration
	planned uint64
	heap    []event
}

// at plans an event. What lies in the past happens next.
func (a *agenda) at(t time.Duration, happen func()) {
	a.planned++
	a.heap = append(a.heap, event{max(t, a.now), a.planned, happen})
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.heap[i].before(a.heap[up]) {
			return
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

func (a *agenda) after(d time.Duration, happen func()) { a.at(a.now+d, happen) }

// step lets the next event happen. It returns false, and the time is until, if
// there is none up to then.
func (a *agenda) step(until time.Duration) bool {
	if len(a.heap) == 0 || a.heap[0].at > until {
		a.now = max(a.now, until)
		return false
	}
	next := a.heap[0]
	end := len(a.heap) - 1
	a.heap[0], a.heap[end] = a.heap[end], event{}
	a.heap = a.heap[:end]
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < end && a.heap[down+1].before(a.heap[down]) {
			down++
		}
		if down >= end || !a.heap[down].before(a.heap[i]) {
			break
		}
		a.heap[i], a.heap[down] = a.heap[down], a.heap[i]
		i = down
	}
	a.now = next.at
	next.happen()
	return true
}

// draws is a source of randomness that is a function of a seed.
type draws struct{ *rand.Rand }

// newDraws returns one of the streams of a seed. Streams are independent: who
// draws more from one leaves the others as they were.
func newDraws(seed, stream uint64) draws {
	return draws{rand.New(rand.NewPCG(seed, stream))}
}

// chance is true with probability p.
func (d draws) chance(p float64) bool { return p > 0 && d.Float64() < p }

// scale draws from [lo, hi], every order of magnitude alike.
func (d draws) scale(lo, hi float64) float64 {
	return lo * math.Exp(d.Float64()*math.Log(hi/lo))
}

// span draws a time from [lo, hi] like scale.
func (d draws) span(lo, hi time.Duration) time.Duration {
	return time.Duration(d.scale(float64(lo), float64(hi)))
}

// wait draws the time to the next of events that come once in mean on average.
func (d draws) wait(mean time.Duration) time.Duration {
	return time.Duration(d.ExpFloat64() * float64(mean))
}

// pick draws one of the values.
func pick[T any](d draws, values ...T) T { return values[d.IntN(len(values))] }
