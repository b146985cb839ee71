// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"slices"
	"sync"
	"time"
)

// Acks keeps the times of answered calls, for readers while the load goes on. Its method Note is
// for [Load].
type Acks struct {
	mu   sync.Mutex
	all  []Ack
	fail error
}

// Ack is an answered call.
type Ack struct{ Begun, Done time.Time }

// Took is the time from the beginning to the answer.
func (a Ack) Took() time.Duration { return a.Done.Sub(a.Begun) }

// Note keeps a call.
func (a *Acks) Note(c *Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.Err != nil {
		a.fail = c.Err
		return
	}
	a.all = append(a.all, Ack{c.Begun, c.Done})
}

// List returns the answered calls so far, in the order of their answers.
func (a *Acks) List() []Ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// Err returns the last failure.
func (a *Acks) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fail
}

// LongestGap returns the longest time without an answer that began between two instants, the
// first of which counts as an answer. Without any answer since, the second one ends the gap.
func (a *Acks) LongestGap(from, until time.Time) (longest time.Duration) {
	all := a.List()
	slices.SortFunc(all, func(x, y Ack) int { return x.Done.Compare(y.Done) })
	last := from
	for _, x := range all {
		if last.After(until) {
			return longest
		}
		if x.Done.After(from) {
			longest, last = max(longest, x.Done.Sub(last)), x.Done
		}
	}
	return max(longest, until.Sub(last))
}
