// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package slowbench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Report puts what was measured into tables.
func Report(cfg Config, runs []Run) *lab.Section {
	s := &lab.Section{Verb: "slow", Page: true, Title: "Data: slow nodes", Intro: cfg.intro(), Data: runs, Rounds: cfg.Rounds}
	add := func(heading, title string, figure func(Run) float64, who ...string) {
		median := func(of []Run) string { return lab.RoundsOf(of, figure).Text("%.2f") }
		s.Tables = append(s.Tables, lab.Table{Heading: heading, Title: title, Rows: cfg.rows(runs, median, who)})
	}
	p99 := func(r Run) float64 { return r.P99 }
	add("## Calls a second", "As a share of the healthy rate, from one election timeout after the fault began:", func(r Run) float64 { return r.Share }, Whom...)
	add("## The longest gap", "Without any answer, since the fault began, in election timeouts:", func(r Run) float64 { return r.Gap }, Whom...)
	add("## The 99th percentile", "As a multiple of the healthy one, of the calls answered from one election timeout after the fault began (0: no call was):", p99, Whom...)
	add("## As many followers as may fail", "The same, for one follower of three and two of five. The aim is at most 1.2:", p99, minority)
	s.Tables = append(s.Tables, lab.Table{
		Heading: "## How often", Title: fmt.Sprintf("Of %d rounds, those with a share of at least %v; with no gap longer than %v election timeouts; with a 99th percentile "+
			"of at most %v times the healthy one; with all three:", cfg.Rounds, leastShare, longestGap, highestP99),
		Rows: cfg.rows(runs, howOften, Whom),
	})
	return s
}

// What a fault of as many nodes as may fail is to leave.
const (
	leastShare = 0.9
	longestGap = 2.0
	highestP99 = 3.0
)

// howOften counts the rounds that meet each aim, and all.
func howOften(of []Run) string {
	var share, gap, p99, all int
	for _, r := range of {
		aims := []bool{r.Share >= leastShare, r.Gap <= longestGap, r.P99 > 0 && r.P99 <= highestP99}
		for i, n := range []*int{&share, &gap, &p99} {
			if aims[i] {
				*n++
			}
		}
		if !slices.Contains(aims, false) {
			all++
		}
	}
	return fmt.Sprintf("%d; %d; %d; %d", share, gap, p99, all)
}

func (c Config) intro() string {
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
		"for %v; then the fault strikes the leader for %v, or a follower, or as many followers as may fail (minority), for half as long. Faults of leaders, and\n"+
		"all with roster leases, strike a new cluster each; those of followers one cluster in turn, which has %v after each to get well. Medians of %d\n"+
		"rounds, in which the sides take turns; in parentheses the least and the greatest. A node that is *dead* is there to compare with. A share\n"+
		"is above 1 if a node of the clients becomes the leader, which is nearer. etcd's syncs take what the machine takes, and its disk cannot be made slow.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), lab.CPUModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, c.Link, c.Sync, c.electionTimeout(),
		c.Clients, lab.Bytes(c.Size), c.Reads, patience*c.electionTimeout(), c.Healthy, c.For, c.getsWell(), c.Rounds, strings.Join(words, "\n"))
}

// rows returns what cell says of the runs of each case with some victims, a column a side.
func (c Config) rows(runs []Run, cell func([]Run) string, who []string) [][]string {
	rows := [][]string{{"fault", "who", "N"}}
	for _, s := range c.Sides {
		rows[0] = append(rows[0], s.Name)
	}
	for _, x := range c.cases() {
		if !slices.Contains(who, x.Who) && (x.Who != follower || x.Nodes >= 5) { // that are as many as may fail
			continue
		}
		row := []string{x.Fault, x.Who, fmt.Sprint(x.Nodes)}
		for _, s := range c.Sides {
			of := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Case != x || r.Side != s.Name })
			if len(of) == 0 {
				row = append(row, "not measured")
				continue
			}
			row = append(row, cell(of))
		}
		rows = append(rows, row)
	}
	return rows
}
