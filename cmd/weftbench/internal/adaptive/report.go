// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package adaptive compares the adaptive policy of package ecraft with fixed levels, in virtual
// time: on many networks, with many payloads and loads, when a follower stops, and when the network
// changes.
//
// A cell is a network, a mix of payloads and a load. All sides run each cell with the same
// arrivals, and are compared with the best fixed level of the cell, which is known only in
// hindsight. The cluster is a small model of the protocol, or real cores over rafttest/vnet; a test
// compares the two.
package adaptive

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Report is the result of a run of the command.
type Report struct {
	Cluster string   `json:"cluster"` // model or cores
	Seed    uint64   `json:"seed"`
	Rows    []Row    `json:"rows"`
	Outages []Outage `json:"outages"`
	Shifts  []Shift  `json:"shifts"`
	// AsGood names the payloads and loads at which full copies were within 1%
	// of ours, or better, in a group of five, with the networks.
	AsGood []string `json:"full_copies_as_good"`
}

// Run runs all cells and scenarios of the options. The same options give the same report.
func Run(ctx context.Context, o Options, progress io.Writer) (*Report, error) {
	r := &Report{Cluster: "model", Seed: o.Seed}
	if o.Cores {
		r.Cluster = "cores"
	}
	for _, n := range o.Nodes {
		begun := time.Now()
		cells, err := o.sweep(ctx, n)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, rows(n, cells, o.sides(n))...)
		if n == 5 {
			r.AsGood = asGood(cells, o.sides(n))
		}
		fmt.Fprintf(progress, "N = %d: %d cells in %s\n", n, len(cells), time.Since(begun).Round(time.Second))
	}
	var err error
	if r.Outages, err = o.outages(); err != nil {
		return nil, err
	}
	r.Shifts, err = o.shifts()
	return r, err
}

// asGood lists the cells in which full copies lose nothing.
func asGood(cells []*cell, sides []Side) (names []string) {
	full := 0
	for i, s := range sides {
		if s.level == 1 {
			full = i
		}
	}
	for _, c := range cells {
		for _, m := range metrics[:2] {
			if m.in(c.load) && c.mix.mean() >= threshold && m.of(&c.runs[full]) <= 1.01*m.of(&c.runs[0]) {
				names = append(names, c.name())
			}
		}
	}
	return names
}

func short(d time.Duration) string {
	switch {
	case d >= 10*ms:
		return d.Round(ms).String()
	case d >= ms:
		return d.Round(100 * us).String()
	}
	return d.Round(us).String()
}
