// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import "time"

// kind is the kind of an event.
type kind uint8

const (
	arrival  kind = iota // a message reaches a follower
	synced               // a follower's disk is done
	answer               // an answer reaches the leader
	beat                 // the leader sends heartbeats
	beatAt               // a heartbeat reaches a follower
	beatBack             // the heartbeat's answer reaches the leader
	hedgeAt              // an entry's hedge timer
	client               // a client proposes
	pushed               // units of a follower reach another
)

// event is an event at an instant of virtual time. event is a plain value, because a run has
// millions of events.
type event struct {
	at    time.Duration
	seq   uint64 // breaks ties, so that the order is total
	index uint64
	held  time.Duration
	kind  kind
	node  int16
	ran   bool // the receiver's processor has done its part
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// agenda is the events to come: a binary heap, earliest first.
type agenda struct {
	heap []event
	seq  uint64
}

func (a *agenda) add(e event) {
	a.seq++
	e.seq = a.seq
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if a.heap[parent].before(&e) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

func (a *agenda) pop() (event, bool) {
	if len(a.heap) == 0 {
		return event{}, false
	}
	first := a.heap[0]
	last := a.heap[len(a.heap)-1]
	a.heap = a.heap[:len(a.heap)-1]
	n := len(a.heap)
	if n == 0 {
		return first, true
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && a.heap[child+1].before(&a.heap[child]) {
			child++
		}
		if last.before(&a.heap[child]) {
			break
		}
		a.heap[i] = a.heap[child]
		i = child
	}
	a.heap[i] = last
	return first, true
}
