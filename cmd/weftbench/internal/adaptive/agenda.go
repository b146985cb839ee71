// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

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

// Before implements world.Heap's order.
func (e event) Before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// agenda is the events to come.
type agenda struct {
	heap world.Heap[event]
	seq  uint64
}

func (a *agenda) add(e event) {
	a.seq++
	e.seq = a.seq
	a.heap.Push(e)
}
