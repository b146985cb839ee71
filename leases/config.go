// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"fmt"
	"time"
)

// Config is the settings of leases at one node. All nodes of a group should have
// the same durations and bounds. A node with others stays safe as long as Drift
// and Resolution hold for its clock and for its peers'.
type Config struct {
	// ID is the node's own; not 0.
	ID NodeID
	// Boot differs from that of every earlier run of this node, so that an
	// answer to a request of an earlier run is never taken for one of this run's:
	// random bits, or a number that is counted up on disk. Not 0.
	Boot Boot
	// Lease is for how long a grant binds its grantor at most; 0 means 1 s. It
	// bounds how long writes wait for a responder that died.
	Lease time.Duration
	// Quarantine is for how long after a start the node votes, campaigns, adopts
	// and grants nothing; 0 means Lease. Where Lease was lowered since the run
	// before, it is the Lease of that run. At least Lease.
	Quarantine time.Duration
	// Heartbeat is how often leases are renewed; 0 means 100 ms.
	Heartbeat time.Duration
	// Fail is for how long a responder may keep a write waiting, or leave the
	// leader without an answer, before the leader names it no more; 0 means
	// 500 ms. At least two heartbeats.
	Fail time.Duration
	// ElectionTimeout is the least time without a word of the leader after which
	// a node campaigns, or votes for others; not 0. No lease outlives it, so that leases delay no
	// election. A lease is at most this long, less a heartbeat.
	ElectionTimeout time.Duration
	// DriftPPM bounds the rate of every clock of the group, in millionths: a clock
	// gains or loses at most so many microseconds in a second of real time,
	// counting what NTP slews. 0 means 1000, which is 0.1%. At most 250000.
	DriftPPM int
	// Resolution is by how much a reading of a clock may be behind the clock;
	// 0 means 1 ms.
	Resolution time.Duration
	// Notes turns on early accept notes. They are in use where the leader has them on.
	Notes bool
	// Wanted is the responders that a leader names when it knows no roster of an
	// earlier leader; ascending, disjoint.
	Wanted []Want
	// Tuner chooses responders by who reads what, where no operator has; nil turns it off.
	Tuner *TunerConfig
}

const maxDriftPPM = 250_000

// withDefaults returns a copy with the documented meanings of 0 put in.
func (c Config) withDefaults() Config {
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	or(&c.Lease, time.Second)
	or(&c.Quarantine, c.Lease)
	or(&c.Heartbeat, 100*time.Millisecond)
	or(&c.Fail, 500*time.Millisecond)
	or(&c.Resolution, time.Millisecond)
	if c.DriftPPM == 0 {
		c.DriftPPM = 1000
	}
	return c
}

// delta is what a grantee counts less than its grantor promised: at least
// 2*rho*L/(1+rho), by which the slowest clock may be behind the fastest at the
// end of a lease, and the resolution of both clocks.
func (c *Config) delta() time.Duration {
	const million = 1_000_000
	rho := time.Duration(c.DriftPPM)
	// In steps that do not overflow: L is whole parts of a million, and a rest.
	perPart := 2 * rho
	drift := c.Lease/(million+rho)*perPart + (c.Lease%(million+rho)*perPart+million+rho-1)/(million+rho)
	return drift + 2*c.Resolution
}

// Validate reports every mistake at once, each with the field, its value and its
// bound. Fields of value 0 are taken as documented.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	check := func(ok bool, field string, value any, bound string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w.%s is %v, want %s", ErrConfig, field, value, fmt.Sprintf(bound, args...)))
		}
	}
	const longest = time.Hour
	check(c.ID != 0, "ID", c.ID, "an id that is not 0")
	check(c.Boot != 0, "Boot", c.Boot, "a number that is not 0 and differs in every run of the node")
	check(c.Lease > 0 && c.Lease <= longest, "Lease", c.Lease, "more than 0 and at most %v", longest)
	check(c.Quarantine >= c.Lease, "Quarantine", c.Quarantine, "at least Lease, %v: the longest that the node can have promised in its run before", c.Lease)
	check(c.Heartbeat > 0, "Heartbeat", c.Heartbeat, "more than 0")
	check(c.Fail >= 2*c.Heartbeat, "Fail", c.Fail, "at least two heartbeats, %v", 2*c.Heartbeat)
	check(c.ElectionTimeout > 0 && c.ElectionTimeout <= longest, "ElectionTimeout", c.ElectionTimeout, "more than 0 and at most %v", longest)
	check(c.DriftPPM > 0 && c.DriftPPM <= maxDriftPPM, "DriftPPM", c.DriftPPM, "1 to %d", maxDriftPPM)
	check(c.Resolution > 0 && c.Resolution <= longest, "Resolution", c.Resolution, "more than 0 and at most %v", longest)
	if len(errs) == 0 {
		renewed := min(c.Lease, c.ElectionTimeout) - c.delta()
		check(3*c.Heartbeat <= renewed, "Heartbeat", c.Heartbeat,
			"at most %v, a third of what a lease lasts: Lease or ElectionTimeout, less %v for drift", max(renewed, 0)/3, c.delta())
	}
	if err := checkWants(c.Wanted); err != nil {
		errs = append(errs, fmt.Errorf("%w.Wanted: %w", ErrConfig, err))
	}
	if c.Tuner != nil {
		errs = append(errs, c.Tuner.validate())
	}
	return errors.Join(errs...)
}
