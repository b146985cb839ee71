// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/weftraft/weft/internal/replica"
)

// driver owns the replica and lets one goroutine at a time have it for a turn.
//
// A goroutine that brings something, a call or a message, could leave it to the
// loop. But to wake another goroutine costs more than most turns take. So it takes
// the turn itself, if nobody is at it; if somebody is, the loop takes the next turn,
// with all that has come in meanwhile. Without load nobody waits for a change of
// goroutine, and under load turns are as large as they would be otherwise.
type driver struct {
	mu      sync.Mutex
	replica *replica.Replica
	spare   []input // memory
	ended   bool    // there are no turns any more
	// at and due are the replica's deadline as of when the loop looked last.
	at  replica.Deadline
	due bool
}

// take takes a turn, after something else. Only the loop waits for the replica.
func (d *driver) take(h *Host, before func(*replica.Replica)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before(d.replica)
	d.spare = h.turn(d.replica, d.spare)
}

// next returns when the replica wants to be polled, and whether it is out of
// service.
func (d *driver) next() (at replica.Deadline, due, ended bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = d.ended || d.replica.Err() != nil
	d.at, d.due = d.replica.Deadline()
	return d.at, d.due, d.ended
}

// end sees to it that nobody takes another turn.
func (d *driver) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
}

// offer takes a turn if nobody has the replica, and else leaves it to the loop.
// The caller has added something to the inbox.
func (d *driver) offer(h *Host) {
	if !d.mu.TryLock() {
		// If that goroutine has not seen what was added, it is still there.
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
			// The caller's program may recover from panics. The replica could not:
			// nobody knows what it is in the middle of.
			failed := fmt.Sprintf("rawnode: %v\n%s", recover(), debug.Stack())
			go panic(failed)
			select {}
		}
	}()
	d.spare = h.turn(d.replica, d.spare)
	done = true
	at, due := d.replica.Deadline()
	if d.replica.Err() != nil || due && (!d.due || at < d.at) {
		h.inbox.post(func(*replica.Replica) {}) // the loop is to look at that
	}
}
