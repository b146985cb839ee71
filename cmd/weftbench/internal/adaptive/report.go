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
	if len(o.Nodes) == 0 {
		o.Nodes = []int{3, 5, 7, 9}
	}
	for _, n := range o.Nodes {
		if n < 3 || n > maxFollowers+1 {
			return nil, fmt.Errorf("nodes: %d, want 3..%d", n, maxFollowers+1)
		}
	}
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

// Text writes the report as tables.
func (r *Report) Text(w io.Writer) {
	fmt.Fprintf(w, "Each side against the best fixed level in hindsight, cell by cell (1 is as good,\n2 twice as slow). Virtual time, %s, seed %d.\n", r.Cluster, r.Seed)
	var nodes int
	var metric, group string
	for _, row := range r.Rows {
		if row.Nodes != nodes || row.Group != group || row.Metric != metric {
			nodes, group, metric = row.Nodes, row.Group, row.Metric
			fmt.Fprintf(w, "\nN = %d, %s networks, %s (%d cells)\n", nodes, group, metric, row.Cells)
			fmt.Fprintf(w, "  %-13s %8s %8s %9s   %s\n", "", "mean", "worst", "within 3%", "worst cell")
		}
		fmt.Fprintf(w, "  %-13s %8.3f %8.2f %8.0f%%   %s\n", row.Side, row.Mean, row.Worst, 100*row.Within, row.WorstCell)
	}
	fmt.Fprintf(w, "\nOne of four followers stops: 64 KB, 70%% load; medians of several runs, and the worst\n")
	fmt.Fprintf(w, "  %-8s %-13s %-11s %7s %7s %7s %17s %17s %s\n", "network", "follower", "side", "p50", "p99", "max", "no commit", "extra", "carriers")
	for _, x := range r.Outages {
		fmt.Fprintf(w, "  %-8s %-13s %-11s %7s %7s %7s %17s %17s %d\n", x.Network, x.What, x.Side,
			short(x.P50), short(x.P99), short(x.Max), short(x.Stall)+" / "+short(x.WorstStall),
			fmt.Sprintf("%.2f%% / %.2f%%", 100*x.Extra, 100*x.WorstExtra), x.Riders)
	}
	fmt.Fprintf(w, "\nThe network changes under load: when it is settled, and how it compares\n")
	fmt.Fprintf(w, "  %-46s %8s %8s %8s\n", "", "settled", "before", "after")
	for _, x := range r.Shifts {
		fmt.Fprintf(w, "  %-46s %8s %8.2f %8.2f\n", x.What, short(x.Settled), x.Before, x.After)
	}
	fmt.Fprintf(w, "\nFull copies are as good in %d cells of N = 5 above the threshold:\n", len(r.AsGood))
	for _, name := range r.AsGood {
		fmt.Fprintf(w, "  %s\n", name)
	}
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
