// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import "time"

// event is something that happens at an instant of virtual time.
type event struct {
	at time.Duration
	// seq numbers events in the order in which they were planned. It breaks
	// ties, so that the order of events is total and a function of the seed.
	seq uint64
	run func()
}

func (e event) before(o event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// Agenda is the events to come: a binary heap, earliest first. It is written
// out rather than built on container/heap, which would box each of some ten
// thousand events a run. The zero value is empty, at time 0.
type Agenda struct {
	now  time.Duration
	seq  uint64
	heap []event
}

// Now returns the virtual time.
func (a *Agenda) Now() time.Duration { return a.now }

// At plans run for an instant; what lies in the past happens next.
func (a *Agenda) At(t time.Duration, run func()) {
	a.seq++
	a.heap = append(a.heap, event{at: max(t, a.now), seq: a.seq, run: run})
	i := len(a.heap) - 1
	e := a.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

// After plans run for a time from now.
func (a *Agenda) After(d time.Duration, run func()) { a.At(a.now+d, run) }

// Step lets the next event happen, and reports whether there was one up to the
// instant until. If not, the time is until.
func (a *Agenda) Step(until time.Duration) bool {
	if len(a.heap) == 0 || a.heap[0].at > until {
		a.now = max(a.now, until)
		return false
	}
	next := a.heap[0]
	last := len(a.heap) - 1
	e := a.heap[last]
	a.heap[last] = event{} // let go of the closure
	if a.heap = a.heap[:last]; last > 0 {
		a.sink(e)
	}
	a.now = next.at
	next.run()
	return true
}

// sink puts an event into its place below the top, which is free.
func (a *Agenda) sink(e event) {
	h, i := a.heap, 0
	for {
		least := 2*i + 1
		if least >= len(h) {
			break
		}
		if right := least + 1; right < len(h) && h[right].before(h[least]) {
			least = right
		}
		if !h[least].before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}
