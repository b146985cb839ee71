// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package slowbench

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Report puts what was measured into tables.
func Report(cfg Config, runs []Run) *lab.Section {
	t := tables{cfg, runs}
	all := func(Case) bool { return true }
	failed := func(c Case) bool { return c.Who == minority || c.Who == follower && c.Nodes < 5 }
	return &lab.Section{
		Verb: "slow", Page: true, Title: "Data: slow nodes", Intro: t.intro(), Data: runs, Rounds: cfg.Rounds,
		Tables: []lab.Table{
			t.table("## Calls a second", "As a share of the healthy rate, from one election timeout after the fault began:", all, func(r Run) float64 { return r.Share }),
			t.table("## The longest gap", "Without any answer, since the fault began, in election timeouts:", all, func(r Run) float64 { return r.Gap }),
			t.table("## The 99th percentile", "As a multiple of the healthy one, of the calls answered from one election timeout after the fault began (0: no call was):", all, func(r Run) float64 { return r.P99 }),
			t.table("## As many followers as may fail", "The same, for one follower of three and two of five. The aim is at most 1.2:", failed, func(r Run) float64 { return r.P99 }),
		},
	}
}

// tables are those of the report.
type tables struct {
	cfg  Config
	runs []Run
}

func (t tables) intro() string {
	c := t.cfg
	var words []string
	for _, s := range c.Sides {
		words = append(words, fmt.Sprintf("- **%s**: %s.", s.Name, s.About))
	}
	words = append(words, "")
	for _, name := range c.Faults {
		words = append(words, fmt.Sprintf("- *%s*: %s.", name, c.fault(name).About))
	}
	return fmt.Sprintf("Written by `make bench-slow` on %s: nodes as processes of their own, all on one machine with the clients (%s, %d\n"+
		"CPUs, %s on %s/%s). A message takes %v in each direction and a sync %v, besides what the machine takes; the election timeout is %v.\n"+
		"%d clients of the nodes that stay healthy, each in a closed loop with values of %s, %d%% linearizable reads, and at most %v a call, go on\n"+
		"for %v; then the fault strikes a node, or as many followers as may fail (minority), for %v. Each figure is of a new cluster. Medians of %d\n"+
		"rounds, in which the sides take turns; in parentheses the least and the greatest. A node that is *dead* is there to compare with. A share\n"+
		"is above 1 if a node of the clients becomes the leader, which is nearer.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), lab.CPUModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, c.Link, c.Sync, c.electionTimeout(),
		c.Clients, lab.Bytes(c.Size), c.Reads, patience*c.electionTimeout(), c.Healthy, c.For, c.Rounds, strings.Join(words, "\n"))
}

// table returns a figure of the rows that are wanted, a column a side.
func (t tables) table(heading, title string, wanted func(Case) bool, figure func(Run) float64) lab.Table {
	head := []string{"fault", "who", "N"}
	for _, s := range t.cfg.Sides {
		head = append(head, s.Name)
	}
	table := lab.Table{Heading: heading, Title: title, Rows: [][]string{head}}
	for _, row := range t.cfg.cases() {
		if !wanted(row) {
			continue
		}
		line := []string{row.Fault, row.Who, fmt.Sprint(row.Nodes)}
		for _, s := range t.cfg.Sides {
			line = append(line, t.cell(row, s.Name, figure))
		}
		table.Rows = append(table.Rows, line)
	}
	return table
}

// cell returns a figure of the rounds of a row at a side.
func (t tables) cell(row Case, side string, figure func(Run) float64) string {
	var rounds lab.Rounds
	for _, r := range t.runs {
		if r.Case == row && r.Side == side {
			rounds = append(rounds, figure(r))
		}
	}
	return rounds.Text("%.2f")
}
