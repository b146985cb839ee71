// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"sync"
	"time"
)

// Trials are those of full copies and of coding, by groups of one process together: they share its processors and the
// node's links. See [Options].
type Trials struct {
	mu    sync.Mutex
	clock func() time.Duration // nil: times are those that groups give
	alone bool                 // of one group
	processors
}

// NewTrials returns trials by a clock that never goes back: the time since any moment. A nil clock is for groups whose own times
// are of one clock.
func NewTrials(clock func() time.Duration) *Trials {
	t := &Trials{clock: clock}
	t.reset()
	return t
}

// enter locks, and returns the time.
func (t *Trials) enter(now time.Duration) float64 {
	t.mu.Lock()
	if t.clock != nil {
		now = t.clock()
	}
	return now.Seconds()
}

func (t *Trials) proposed(l *lane, index uint64, size float64, now time.Duration) {
	at := 0.0
	if l.large { // else no other group knows of the lane
		at = t.enter(now)
		defer t.mu.Unlock()
	}
	t.processors.proposed(l, index, size, at)
}

// answered tells the time of an answer, which is that of the commits that it brings. While no entry waits, it brings none.
func (t *Trials) answered(l *lane, now time.Duration) {
	if !l.large {
		return
	}
	at := t.enter(now)
	defer t.mu.Unlock()
	if l.heard = at; t.open > 0 {
		t.at(at)
	}
}

func (t *Trials) committed(l *lane, index uint64) {
	if !l.large {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.processors.committed(l, index)
}

func (t *Trials) wantFull(l *lane, busy float64, now time.Duration) bool {
	at := t.enter(now)
	defer t.mu.Unlock()
	return t.processors.wantFull(l, busy, at)
}

// codes notes that the choice by links codes an entry.
func (t *Trials) codes() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coded = true
}

// begins forgets a group's entries on their way. A group alone forgets who was better, too.
func (t *Trials) begins(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(func(other *lane) bool { return other == l })
	if t.alone {
		t.reset()
	}
}
