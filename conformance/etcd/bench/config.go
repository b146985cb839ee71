// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures etcd as released beside etcd on Weft: clusters of real
// processes under the same load in turns, over links of a known rate.
//
// A cell is one side under one load. For each round and size of values a side
// begins with an empty cluster, so that neither what was measured before nor the
// clusters of other sides are in its way. All clients call the leader, closed-loop,
// and each put has a key of its own. After the load, when the members rest, every
// value is read at every member from that member's own data.
package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/netlab"
)

// Side is a way to run etcd.
type Side struct {
	Name    string
	About   string // for the report
	Program string
	Env     []string
	// Codes says that large values are to be coded: that they were, and that
	// no other side codes, is checked.
	Codes bool
}

// Config says what to measure. The first side is what the others are compared with.
type Config struct {
	Sides   []Side
	Members []int
	Links   []int64 // bits a second that a member's card sends, and receives; 0: no bound
	Sizes   []int   // bytes of a value
	Clients []int
	Rounds  int
	// Time is how long clients begin calls, unless a bound of bytes comes first,
	// or a client has not made Least calls by then.
	Time time.Duration
	// Others is the share of the machine's processors, 0 to 1, above which a
	// measurement is made again because others used them.
	Others  float64
	Network string // a kind of netlab, empty for what the machine allows
	Coded   int    // bytes of the smallest value that is coded

	Dir      string // for data and logs; each cluster's is removed when it is done
	Progress func(string)
}

const (
	// Least is how many calls each client makes at least.
	Least = 3
	// maxBytes is the payload of a measurement, unless Least needs more.
	maxBytes = 96 << 20
	// maxValue is what etcd takes by default in one request, less the key.
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
		if err := (netlab.Config{Hosts: 1, Rate: rate, Kind: c.Network}).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--links, --network: %w", err))
		}
	}
	if !(c.Others >= 0 && c.Others <= 1) {
		errs = append(errs, fmt.Errorf("--others: %v, want 0 to 1", c.Others))
	}
	if c.Time < 100*time.Millisecond || c.Time > time.Hour {
		errs = append(errs, fmt.Errorf("--time: %v, want 100ms to 1h", c.Time))
	}
	return errors.Join(errs...)
}

// Load is what the cells of a row have in common.
type Load struct {
	Members int   `json:"members"`
	Link    int64 `json:"link_bits_per_s"`
	Size    int   `json:"size"`
	Clients int   `json:"clients"`
}

func (l Load) String() string {
	return fmt.Sprintf("%d members, %s, %s x %d", l.Members, linkName(l.Link), bytesName(l.Size), l.Clients)
}

// loads returns all loads: those of one size, which share clusters, follow each
// other.
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
	switch {
	case rate == 0:
		return "links without a bound"
	case rate%1e9 == 0:
		return fmt.Sprintf("links of %d Gbit/s", rate/1e9)
	case rate%1e6 == 0:
		return fmt.Sprintf("links of %d Mbit/s", rate/1e6)
	}
	return fmt.Sprintf("links of %d bit/s", rate)
}

func bytesName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
