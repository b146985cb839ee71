// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wefttest

import (
	"container/heap"
	"time"
)

// agenda holds the coming events, in virtual time. Events of the same moment happen in the order in
// which they were planned.
type agenda struct {
	now    time.Duration
	number uint64
	events events
}

type event struct {
	at     time.Duration
	number uint64
	happen func()
}

// at plans an event; an event planned for the past happens next.
func (a *agenda) at(t time.Duration, happen func()) {
	a.number++
	heap.Push(&a.events, event{max(t, a.now), a.number, happen})
}

func (a *agenda) after(d time.Duration, happen func()) { a.at(a.now+d, happen) }

// step lets the next event happen, unless the event is later than until: then step advances the
// time to until and returns false.
func (a *agenda) step(until time.Duration) bool {
	if len(a.events) == 0 || a.events[0].at > until {
		a.now = max(a.now, until)
		return false
	}
	e := heap.Pop(&a.events).(event)
	a.now = e.at
	e.happen()
	return true
}

// events is a heap.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}
