// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/leases/clock"
	weft "github.com/weftraft/weft/raft"
)

const (
	// leasesVariable turns roster leases on; "retire" switches leases off in the whole
	// group, so that members can be restarted without leases; "off" is no leases.
	leasesVariable = "WEFT_LEASES"
	// The other variables have an effect only beside leasesVariable. tickVariable is the
	// time between two ticks of the host, a duration like the next two.
	tickVariable = "WEFT_LEASES_TICK"
	// lengthVariable is Leases.Lease.
	lengthVariable = "WEFT_LEASES_LENGTH"
	// quarantineVariable is Leases.Quarantine.
	quarantineVariable = "WEFT_LEASES_QUARANTINE"
	// driftVariable is Leases.DriftPPM.
	driftVariable = "WEFT_LEASES_DRIFT_PPM"
	// respondersVariable names the nodes that answer reads: "all" voters, "none" besides
	// the leader, or node ids in hexadecimal, separated by commas.
	respondersVariable = "WEFT_LEASES_RESPONDERS"
)

const (
	defaultTick  = 100 * time.Millisecond
	longestTime  = time.Hour
	highestDrift = 250_000
)

// addLeases puts the leases of the environment into c, and returns a line for the host's
// log: empty if leases are off, or set by the host.
func addLeases(c *weft.Config, lookup func(string) (string, bool)) (says string, err error) {
	if c.Leases != nil {
		return "", nil
	}
	l, err := leasesFrom(lookup)
	if err != nil || l == nil {
		return "", err
	}
	c.Leases = l
	if c.Clock == nil {
		if err := clock.Check(leases.DefaultResolution); err != nil {
			return "", fmt.Errorf("%s asks for roster leases: %w", leasesVariable, err)
		}
		watchClock()
		c.Clock = clock.Watched{DriftPPM: cmp.Or(l.DriftPPM, leases.DefaultDriftPPM)}
	}
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("%s asks for roster leases, which do not go with the settings of this host:\n%w\nChange the host's settings or the variables, or unset %[1]s",
			leasesVariable, err)
	}
	return leasesEffect(l), nil
}

// watchClock has the clock measured for as long as the process runs: a host that knows no
// leases does not tell when its last node has stopped.
var watchClock = sync.OnceFunc(func() { clock.Watch() })

// leasesFrom returns the leases of the variables, nil for none.
func leasesFrom(lookup func(string) (string, bool)) (*weft.Leases, error) {
	value, set := lookup(leasesVariable)
	switch {
	case !set:
		return nil, uselessLeaseSettings(lookup)
	case value == "off":
		return nil, nil
	case value != "on" && value != "retire":
		return nil, fmt.Errorf("%s is %q; set it to on (members answer linearizable reads by roster leases), to retire (the group stops to do so), or to off",
			leasesVariable, value)
	}
	l := &weft.Leases{Tick: defaultTick, Retired: value == "retire"}
	err := errors.Join(
		duration(lookup, tickVariable, "the time between two ticks of the host, for etcd that of --heartbeat-interval", &l.Tick),
		duration(lookup, lengthVariable, "the longest time for which a lease binds", &l.Lease),
		duration(lookup, quarantineVariable, "the longest "+lengthVariable+" of earlier runs", &l.Quarantine),
		drift(lookup, &l.DriftPPM),
		responders(lookup, &l.Wanted))
	if err != nil {
		return nil, err
	}
	return l, nil
}

// uselessLeaseSettings refuses settings of leases without leases: the operator takes
// leases to be on.
func uselessLeaseSettings(lookup func(string) (string, bool)) error {
	for _, name := range []string{tickVariable, lengthVariable, quarantineVariable, driftVariable, respondersVariable} {
		if value, set := lookup(name); set {
			return fmt.Errorf("%s is %q, and %s is not set; set that to on, retire or off, or unset %[1]s", name, value, leasesVariable)
		}
	}
	return nil
}

// duration reads a variable, if set, into d.
func duration(lookup func(string) (string, bool), name, meaning string, d *time.Duration) error {
	value, set := lookup(name)
	if !set {
		return nil
	}
	got, err := time.ParseDuration(value)
	if err != nil || got <= 0 || got > longestTime {
		return fmt.Errorf("%s is %q; it is %s: set it to a duration of more than 0 and at most %v, such as 100ms or 1s, or unset it", name, value, meaning, longestTime)
	}
	*d = got
	return nil
}

// drift reads the bound on the rates of clocks, if set, into ppm.
func drift(lookup func(string) (string, bool), ppm *int) error {
	value, set := lookup(driftVariable)
	if !set {
		return nil
	}
	got, err := strconv.Atoi(value)
	if err != nil || got < 1 || got > highestDrift {
		return fmt.Errorf("%s is %q; it bounds by how many microseconds a second any member's clock runs fast or slow: set it to a number from 1 to %d, or unset it (which is %d)",
			driftVariable, value, highestDrift, leases.DefaultDriftPPM)
	}
	*ppm = got
	return nil
}

// responders reads the nodes for reads of all keys.
func responders(lookup func(string) (string, bool), wanted *[]leases.Want) error {
	value, set := lookup(respondersVariable)
	switch {
	case !set || value == "all":
		*wanted = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}
		return nil
	case value == "none":
		return nil
	}
	ids := make([]leases.NodeID, 0, strings.Count(value, ",")+1)
	for _, text := range strings.Split(value, ",") {
		id, err := strconv.ParseUint(text, 16, 64)
		if err != nil || id == weft.None || weft.IsLocalMsgTarget(id) {
			return fmt.Errorf("%s is %q, of which %q is no node's id; set it to all (every voter), to none (only the leader), or to ids in hexadecimal with commas between them, as in the host's log",
				respondersVariable, value, text)
		}
		ids = append(ids, leases.NodeID(id))
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > leases.MaxNodes {
		return fmt.Errorf("%s has %d ids; at most %d nodes can answer reads", respondersVariable, len(ids), leases.MaxNodes)
	}
	*wanted = []leases.Want{{Nodes: ids}}
	return nil
}

// leasesEffect returns the line about leases for the host's log.
func leasesEffect(l *weft.Leases) string {
	if l.Retired {
		return "runs with roster leases and has the group stop using them (" + leasesVariable + ")"
	}
	who := "none"
	for _, w := range l.Wanted {
		who = respondersText(w.Nodes)
	}
	return fmt.Sprintf("runs with roster leases; responders besides the leader: %s; a tick is %v (%s)", who, l.Tick, leasesVariable)
}

func respondersText(ids []leases.NodeID) string {
	if slices.Contains(ids, leases.AllVoters) {
		return "all voters"
	}
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, strconv.FormatUint(uint64(id), 16))
	}
	return strings.Join(list, ", ")
}
