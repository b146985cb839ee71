// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"sync"
	"time"
)

type verb uint8

const (
	get verb = iota
	put
	swap // compare-and-swap: write value if the key holds old
)

// operation is a call of a client, and its outcome.
type operation struct {
	verb       verb
	key        string
	old, value string
	call, ret  time.Duration // since the history began
	// answered is false if the client got an error. A write without an answer may have been
	// applied, or may be applied later, or never.
	answered bool
	// read is the result of a get, or the value found by a swap that did not match. A missing key
	// holds the empty string.
	read    string
	swapped bool
	// revision is the revision in the answer's header, a revision of the whole store.
	revision int64
}

// wrote reports whether the operation is known to have written.
func (o *operation) wrote() bool {
	return o.answered && (o.verb == put || o.verb == swap && o.swapped)
}

// history collects operations of all clients.
type history struct {
	began time.Time

	mu    sync.Mutex
	ops   []operation
	acked int // number of acknowledged writes
	// lastAck and gap measure the time between two acknowledged writes.
	lastAck, gap time.Duration
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
	if o.wrote() {
		h.acked++
		h.gap = max(h.gap, o.ret-h.lastAck)
		h.lastAck = max(h.lastAck, o.ret)
	}
}

// mark starts a new measurement of the gap and returns the number of writes acknowledged so far.
func (h *history) mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap, h.lastAck = 0, h.now()
	return h.acked
}

// since returns the number of acknowledged writes, and the longest time without an acknowledged
// write since the last mark.
func (h *history) since() (acked int, gap time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked, h.gap
}

// all returns the operations. all must be called after all clients have stopped.
func (h *history) all() []operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ops
}
