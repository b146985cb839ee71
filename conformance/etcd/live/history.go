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

// operation is one call of a client and what became of it.
type operation struct {
	verb       verb
	key        string
	old, value string
	call, ret  time.Duration // since the history began
	// answered is false if the client got an error. A write may then have been
	// done, may be done later, or never.
	answered bool
	// read is what a get returned, or what a swap that did nothing found. A key
	// that is not there holds the empty string.
	read    string
	swapped bool
	// revision is the one of the answer's header: that of the whole store.
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
	acked int // writes
	// lastAck and gap measure how long clients waited for the next write.
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

// mark starts a new measurement of the gap and returns how many writes were
// acknowledged so far.
func (h *history) mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap, h.lastAck = 0, h.now()
	return h.acked
}

// since returns how many writes were acknowledged, and the longest time
// without one since the last mark.
func (h *history) since() (acked int, gap time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked, h.gap
}

// all returns the operations. It must be called when no client runs any more.
func (h *history) all() []operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ops
}
