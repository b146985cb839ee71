// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config is the settings of leases at one node. The nodes of a group should have the
// same settings, but for ID and Boot. Reads are safe with different durations, as
// long as DriftPPM and Resolution hold for the clocks of all nodes. No duration is more
// than an hour.
type Config struct {
	// ID is the node's own; not 0.
	ID NodeID
	// Boot differs from that of every earlier run of this node: random bits, or a number
	// counted up on disk. Not 0. Boot marks an answer to a request of an earlier run.
	Boot Boot
	// Lease is the longest time for which a grant binds its grantor; 0 means 1 s.
	// A write waits for a responder that died for Fail and Lease at most.
	Lease time.Duration
	// Quarantine is the time after a start for which the node does not vote,
	// campaign, adopt or grant; 0 means Lease, and less is refused. After Lease was
	// lowered, Quarantine is the longest Lease of earlier runs, until a run has outlived
	// its quarantine: a promise may be older than the run before.
	Quarantine time.Duration
	// Heartbeat is how often leases are renewed; 0 means 100 ms. At most a third of Lease
	// and of ElectionTimeout, less what drift takes off.
	Heartbeat time.Duration
	// Fail is the time for which a responder may keep a write waiting, or leave the
	// leader's requests unanswered, before the leader removes it; 0 means 500 ms.
	// At least two heartbeats. A responder that keeps writes waiting for half of Fail again
	// and again is removed, too (rule L16), and so is a responder that takes much longer for
	// writes than its distance and the others' disks explain (rule L33).
	Fail time.Duration
	// ElectionTimeout is the least time without a message of the leader after which
	// a node campaigns, or votes for another; not 0. No lease outlives it, so
	// that leases delay no election.
	ElectionTimeout time.Duration
	// DriftPPM bounds the rates of all clocks of the group: in a second of real
	// time a clock gains or loses at most so many microseconds, slewing by NTP
	// included. 0 means 1000, which is 0.1%; at most 250000.
	DriftPPM int
	// Resolution is how far a reading of a clock may be behind the clock; 0 means
	// 1 ms.
	Resolution time.Duration
	// Notes turns on early accept notes. Without notes of the leader nothing is
	// released early at other nodes.
	Notes bool
	// Wanted is the responders that a leader names if it knows no roster of an
	// earlier leader. Spans ascend and are disjoint, and nodes ascend.
	Wanted []Want
	// Retired makes this node begin each leadership as after Retire(true): leases
	// are switched off in the whole group.
	Retired bool
	// Tuner has responders chosen by where spans are read, for spans without an
	// operator's choice. If Tuner is nil the tuner is off, and has the settings of the zero
	// TunerConfig as soon as an operator switches the tuner on; see SetWanted.
	Tuner *TunerConfig
}

// What the zero values of Config.DriftPPM and Config.Resolution mean.
const (
	DefaultDriftPPM   = 1000 // 0.1%
	DefaultResolution = time.Millisecond
)

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
	or(&c.Resolution, DefaultResolution)
	c.DriftPPM = cmp.Or(c.DriftPPM, DefaultDriftPPM)
	return c
}

// clock is the bound of this node's clock.
func (c *Config) clock() ClockBound {
	return ClockBound{DriftPPM: c.DriftPPM, Resolution: c.Resolution}
}

// delta is what a grantee counts less than its grantor promised: 2*rho*L/(1+rho),
// rounded up, by which the slowest clock may be behind the fastest at the end of a
// lease, and the resolution of both clocks. The worse of this node's bound and the peer's
// counts for both.
func (c *Config) delta(peer ClockBound) time.Duration {
	const million = 1_000_000
	rho := time.Duration(max(c.DriftPPM, peer.DriftPPM))
	// In steps that do not overflow: L is whole parts of a million, and a rest.
	perPart := 2 * rho
	drift := c.Lease/(million+rho)*perPart + (c.Lease%(million+rho)*perPart+million+rho-1)/(million+rho)
	return drift + 2*max(c.Resolution, peer.Resolution)
}

// lasts returns for how long a lease between this node and a peer lasts at most, and whether
// that is long enough to be renewed in time.
func (c *Config) lasts(peer ClockBound) (time.Duration, bool) {
	d := min(c.Lease, c.ElectionTimeout) - c.delta(peer)
	return d, 3*c.Heartbeat <= d
}

// longest bounds durations that are settings.
const longest = time.Hour

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
	check(c.ID != 0, "ID", c.ID, "an id that is not 0")
	check(c.Boot != 0, "Boot", c.Boot, "a number that is not 0 and differs in every run of the node")
	check(c.Lease > 0 && c.Lease <= longest, "Lease", c.Lease, "more than 0 and at most %v", longest)
	check(c.Quarantine >= c.Lease && c.Quarantine <= longest, "Quarantine", c.Quarantine, "at least Lease, %v: the longest that the node can have promised in earlier runs; and at most %v", c.Lease, longest)
	check(c.Heartbeat > 0, "Heartbeat", c.Heartbeat, "more than 0")
	check(c.Fail >= 2*c.Heartbeat && c.Fail <= longest, "Fail", c.Fail, "at least two heartbeats, %v, and at most %v", 2*c.Heartbeat, longest)
	check(c.ElectionTimeout > 0 && c.ElectionTimeout <= longest, "ElectionTimeout", c.ElectionTimeout, "more than 0 and at most %v", longest)
	check(c.DriftPPM > 0 && c.DriftPPM <= maxDriftPPM, "DriftPPM", c.DriftPPM, "1 to %d", maxDriftPPM)
	check(c.Resolution > 0 && c.Resolution <= longest, "Resolution", c.Resolution, "more than 0 and at most %v", longest)
	if len(errs) == 0 {
		renewed, ok := c.lasts(c.clock())
		check(ok, "Heartbeat", c.Heartbeat,
			"at most %v, a third of what a lease lasts: Lease or ElectionTimeout, less %v for drift", max(renewed, 0)/3, c.delta(c.clock()))
	}
	if err := checkWants(c.Wanted); err != nil {
		errs = append(errs, fmt.Errorf("%w.Wanted: %w", ErrConfig, err))
	}
	if c.Tuner != nil {
		errs = append(errs, c.Tuner.validate())
	}
	return errors.Join(errs...)
}
