// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/weftraft/weft/internal/replica"
)

// driver owns the replica and gives the replica to one goroutine at a time, for a turn.
//
// A goroutine that brings a message, or the end of work, could leave the input to the loop, but
// waking the loop costs more than most turns. So the goroutine takes the turn itself if no other goroutine has
// the replica; otherwise the loop takes the next turn, with all inputs that have arrived meanwhile.
// An unloaded host changes goroutines for no input, and a loaded host takes turns as large as with
// the loop alone.
type driver struct {
	mu      sync.Mutex
	replica *replica.Replica
	spare   []input // memory for the inputs of the next turn
	ended   bool    // no turn begins any more
	// at and due are the replica's deadline when the loop looked last.
	at  replica.Deadline
	due bool
}

// take takes a turn after a call of before. Only the loop waits for the replica. A panic leaves the
// replica locked, so that no other goroutine takes a turn before the process ends.
func (d *driver) take(h *Host, before func(*replica.Replica)) {
	d.mu.Lock()
	h.hangs.turn.begin(h.now())
	before(d.replica)
	d.spare = h.turn(d.replica, d.spare)
	d.mu.Unlock()
}

// next returns the time at which the replica is to be polled, and whether the replica is out of
// service.
func (d *driver) next() (at replica.Deadline, due, ended bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = d.ended || d.replica.Err() != nil
	d.at, d.due = d.replica.Deadline()
	return d.at, d.due, d.ended
}

// end prevents all later turns.
func (d *driver) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
}

// offer takes a turn if no goroutine has the replica, and otherwise leaves the turn to the loop.
// The caller has added an input to the inbox.
func (d *driver) offer(h *Host) {
	if !d.mu.TryLock() {
		// If the goroutine at the replica has not seen the input, the input still waits for the
		// loop.
		h.inbox.wake()
		return
	}
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	done := false
	defer func() {
		if !done {
			// The caller's program may recover from panics, but the replica may be halfway through
			// a change: the whole program must end.
			failed := fmt.Sprintf("rawnode: %v\n%s", recover(), debug.Stack())
			go panic(failed)
			select {}
		}
	}()
	d.spare = h.turn(d.replica, d.spare)
	done = true
	at, due := d.replica.Deadline()
	if d.replica.Err() != nil || due && (!d.due || at < d.at) {
		h.inbox.post(func(*replica.Replica) {}) // the loop has to look at the new deadline or the failure
	}
}
