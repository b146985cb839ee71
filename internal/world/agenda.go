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

func (e event) Before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// Agenda is the events to come. The zero value is empty, at time 0.
type Agenda struct {
	now  time.Duration
	seq  uint64
	heap Heap[event]
}

// Now returns the virtual time.
func (a *Agenda) Now() time.Duration { return a.now }

// At plans run for an instant; what lies in the past happens next.
func (a *Agenda) At(t time.Duration, run func()) {
	a.seq++
	a.heap.Push(event{at: max(t, a.now), seq: a.seq, run: run})
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
	next := a.heap.Pop()
	a.now = next.at
	next.run()
	return true
}
