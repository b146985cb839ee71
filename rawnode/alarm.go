// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// alarm wakes the loop when a replica has something to do between ticks. There is
// a timer only once a replica has asked for one, and it runs only while something
// is due: an idle host has none.
type alarm struct {
	timer *time.Timer
	at    replica.Deadline // for which timer runs, if set
	set   bool
}

// arm sets the alarm to what is due, and returns the channel it rings on: nil if
// it never has been set.
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

// rang notes that the channel has delivered.
func (a *alarm) rang() { a.set = false }

// stop lets the timer go.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
