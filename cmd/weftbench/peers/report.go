// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// section returns the report as a document.
func (r *report) section() *lab.Section {
	s := &lab.Section{Verb: "peers", Page: true, Title: "Data: Weft beside other Raft libraries for Go", Intro: r.intro(), Rounds: r.bench.Rounds, Data: r}
	for _, nodes := range r.bench.Nodes {
		for _, within := range []bool{false, true} {
			if t := r.table(nodes, within); len(t.Rows) > 1 {
				s.Tables = append(s.Tables, t)
			}
		}
	}
	return s
}

func (r *report) intro() string {
	chosen, _ := r.bench.chosen() // they were measured
	var about []string
	for _, s := range chosen {
		about = append(about, fmt.Sprintf("- **%s**: %s.", s.name, s.about))
	}
	return fmt.Sprintf(`Written by `+"`make bench-peers`"+` on %s. Each node is a process; all share one machine with the clients (%s, %d CPUs,
%s on %s/%s). A command is a key and a value. It is synced to the logs of a majority before it is acknowledged, and applied to
a Pebble database at each node. All clients call the leader, each waits for its answer before it calls again. After each measurement every
node must have applied all that was acknowledged. The sides take turns, another one first each time: %d rounds of %v. Figures are
medians of the rounds; ratios to %s are medians of the ratios of the rounds, with the least and the greatest. CPU is the processor time of
all nodes for a call, until they rest.

%s`,
		time.Now().UTC().Format(time.DateOnly), lab.CPUModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		r.bench.Rounds, r.bench.Time, chosen[0].name, strings.Join(about, "\n"))
}

// table is that of clusters of a size, with clients within the leader's process or not.
func (r *report) table(nodes int, within bool) lab.Table {
	where := "clients behind gRPC"
	if within {
		where = "clients in the leader's process"
	}
	t := lab.Table{
		Heading: fmt.Sprintf("## %d nodes, %s", nodes, where),
		Rows:    [][]string{{"value", "clients", "side", "calls/s", "of " + r.bench.Sides[0], "p50 ms", "p99 ms", "CPU µs"}},
	}
	for cells := range slices.Chunk(r.Cells, len(r.bench.Sides)) {
		if row := cells[0].Row; row.Nodes != nodes || row.Inside != within {
			continue
		}
		for i, c := range cells {
			ratio := "-"
			if i > 0 {
				ratio = c.PerSecond.Ratio(cells[0].PerSecond).Text("%.2f")
			}
			t.Rows = append(t.Rows, []string{
				lab.Bytes(c.Row.Size), fmt.Sprint(c.Row.Clients), c.Side, fmt.Sprintf("%.0f", c.PerSecond.Median()), ratio,
				fmt.Sprintf("%.2f", c.P50.Median()), fmt.Sprintf("%.2f", c.P99.Median()), fmt.Sprintf("%.0f", c.CPU.Median()),
			})
		}
	}
	return t
}
