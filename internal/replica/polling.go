// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import "time"

// At gives the arrival time of the inputs that follow, in the driver's time.
func (r *Replica) At(now time.Duration) { r.now = max(r.now, now) }

// Deadline returns the time at which Poll is due, in the driver's time; false if no Poll is
// due before another input. A driver may ignore Deadline: work due between ticks is then
// done with the next tick or message.
func (r *Replica) Deadline() (Deadline, bool) {
	if r.err != nil {
		return 0, false
	}
	at, due := r.holding.deadline()
	if r.coding.core != nil && r.leads() {
		if next, codes := r.coding.core.NextDeadline(); codes && (!due || next-r.skew < at) {
			return next - r.skew, true
		}
	}
	return at, due
}

// Poll does what is due between ticks. Flush follows, as after any input.
func (r *Replica) Poll(now time.Duration) {
	r.At(now)
	if r.coding.core != nil && r.err == nil {
		r.coding.core.Poll()
		r.dirty = true
	}
}

// Densify has the group append nothing coded any more, while on: before a
// downgrade. Status().Coding.Dense tells when this node's log has no coded entry
// left, as its host has dropped them. Flush follows, as after any input.
func (r *Replica) Densify(on bool) {
	if r.coding.core != nil && r.err == nil {
		r.coding.core.Densify(on)
		r.dirty = true
	}
}
