// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package clock is the clock that roster leases go by, and a look at how well it keeps
// time.
//
// A lease is a right at one node and a duty at another, each measured by the node's
// own clock. Leases are safe as long as all clocks run at about the same rate, and
// count the time for which a system was suspended: a node that slept must find, when it
// wakes, that its leases have ended. What the time of day is does not matter, so a step
// of the wall clock does no harm.
//
// On Linux the clock is CLOCK_BOOTTIME. On other systems it is Go's monotonic clock,
// which may stand still while the system is suspended: there, leases are for machines
// that are never suspended. A virtual machine that is paused together with its clock
// is beyond the help of any clock: leave leases off.
package clock

import (
	"fmt"
	"time"
)

// Boottime is a raft.Clock. Its readings count from an origin of the system's own, and
// never fall.
type Boottime struct{}

// Now implements raft.Clock. Each call asks the system, because a reading from before
// a pause would show leases that have ended since.
func (Boottime) Now() time.Duration { return now() }

// Check looks whether the clock can carry leases: whether it has the resolution that
// the leases were configured with, does not fall, and goes forward. It takes as long as a
// step of the clock does, at most resolution.
func Check(resolution time.Duration) error {
	step, err := precision()
	if err != nil {
		return fmt.Errorf("the clock of leases cannot be read: %w", err)
	}
	if step > resolution {
		return fmt.Errorf("the clock of leases has steps of %v, and Leases.Resolution is %v: raise Resolution to that at all members, or choose another clock source%s",
			step, resolution, named(source()))
	}
	before := now()
	for begun := time.Now(); ; {
		at := now()
		late := time.Since(begun) > resolution
		switch {
		case at < before:
			return fmt.Errorf("the clock of leases went back by %v%s: leave leases off at this machine", before-at, named(source()))
		case at > before:
			return nil
		case late:
			return fmt.Errorf("the clock of leases stood still for more than Leases.Resolution, %v%s: leave leases off at this machine", resolution, named(source()))
		}
	}
}

func named(source string) string {
	if source == "" {
		return ""
	}
	return fmt.Sprintf(" (clock source %q)", source)
}
