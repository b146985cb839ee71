// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures etcd as released beside etcd on Weft: clusters of real processes under the
// same load in turns, over links of a known rate.
//
// A cell is a side under a load. For each round and size of values a side begins with an empty
// cluster, so that neither earlier measurements nor clusters of other sides disturb the
// measurement. All clients call the leader, closed-loop, and each put has a key of its own. After
// the load, when the members are idle, the benchmark reads every value at every member from the
// member's own data.
package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Side is a way to run etcd.
type Side struct {
	Name    string
	About   string // for the report
	Program string
	Env     []string
	// Codes says that large values are coded on this side. The benchmark checks the logs: coded
	// entries on this side, and none on a side without Codes.
	Codes bool
}

// Config configures the measurements. The other sides are compared with the first side.
type Config struct {
	Sides   []Side
	Members []int
	Links   []int64 // bits a second that a member's card sends, and receives; 0: no bound
	Sizes   []int   // bytes of a value
	Clients []int
	Rounds  int
	// Warm is the time for which a side takes a load before it is measured.
	Warm time.Duration
	// Time is the time for which clients begin calls. A bound of bytes may end this time earlier,
	// and a client that has not made least calls continues after its end.
	Time time.Duration
	// Others is the share of the machine's processors, 0 to 1. If other processes use more, the
	// measurement is made again.
	Others  float64
	Network string // a kind of [lab.Network]; empty for a kind that the machine allows
	Coded   int    // bytes of the smallest value that is coded

	Dir      string // for data and logs; a cluster's directory is removed after the measurement
	Progress func(string)
}

const (
	// least is the least number of calls of each client.
	least = 3
	// maxBytes is the payload of a measurement, unless least needs more.
	maxBytes = 96 << 20
	// maxValue is the default limit of etcd for a request, less the key.
	maxValue = 1 << 20
)

// Validate returns an error that names every mistake, or nil.
func (c Config) Validate() error {
	var errs []error
	within := func(flag string, values []int, least, most int) {
		if len(values) == 0 || slices.Min(values) < least || slices.Max(values) > most {
			errs = append(errs, fmt.Errorf("--%s: %v, want numbers of %d to %d", flag, values, least, most))
		}
	}
	within("members", c.Members, 1, 9)
	within("sizes", c.Sizes, 1, maxValue)
	within("clients", c.Clients, 1, 1000)
	within("rounds", []int{c.Rounds}, 1, 1000)
	if len(c.Links) == 0 {
		errs = append(errs, errors.New("--links: none, want bits a second, 0 for no bound"))
	}
	for _, rate := range c.Links {
		if err := (lab.NetworkConfig{Hosts: 1, Rate: rate, Kind: c.Network}).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--links, --network: %w", err))
		}
	}
	if !(c.Others >= 0 && c.Others <= 1) {
		errs = append(errs, fmt.Errorf("--others: %v, want 0 to 1", c.Others))
	}
	if c.Time < 100*time.Millisecond || c.Time > time.Hour {
		errs = append(errs, fmt.Errorf("--time: %v, want 100ms to 1h", c.Time))
	}
	if c.Warm < 100*time.Millisecond || c.Warm > time.Hour {
		errs = append(errs, fmt.Errorf("--warm: %v, want 100ms to 1h", c.Warm))
	}
	return errors.Join(errs...)
}

// Load is the common part of a row's cells.
type Load struct {
	Members int   `json:"members"`
	Link    int64 `json:"link_bits_per_s"`
	Size    int   `json:"size"`
	Clients int   `json:"clients"`
}

func (l Load) String() string {
	return fmt.Sprintf("%d members, %s, %s x %d", l.Members, linkName(l.Link), lab.Bytes(l.Size), l.Clients)
}

// loads returns all loads. Loads of the same size, which share clusters, follow each other.
func (c Config) loads() (all []Load) {
	for _, members := range c.Members {
		for _, link := range c.Links {
			for _, size := range c.Sizes {
				for _, clients := range c.Clients {
					all = append(all, Load{members, link, size, clients})
				}
			}
		}
	}
	return all
}

func linkName(rate int64) string {
	if rate == 0 {
		return "links without a bound"
	}
	return "links of " + lab.Rate(rate)
}
