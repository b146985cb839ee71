// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// alarm wakes the loop when a replica has work due between two ticks. The timer is made when a
// replica first asks to be woken, and runs only while work is due: an idle host runs no timer.
type alarm struct {
	timer *time.Timer
	at    replica.Deadline // for which timer runs, if set
	set   bool
}

// arm sets the alarm to the replica's deadline, or clears the alarm if nothing is due, and returns
// the channel on which the alarm rings: nil before the first deadline.
func (a *alarm) arm(at replica.Deadline, due bool, now replica.Deadline) <-chan time.Time {
	switch {
	case !due && a.set:
		a.timer.Stop()
	case due && a.timer == nil:
		a.timer = time.NewTimer(at - now)
	case due && (!a.set || at != a.at):
		a.timer.Reset(at - now)
	}
	a.at, a.set = at, due
	if a.timer == nil {
		return nil
	}
	return a.timer.C
}

// rang notes that the channel has delivered: the timer no longer runs.
func (a *alarm) rang() { a.set = false }

// stop lets the timer go.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
