// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// Section returns the report for a document. Of the fixed levels the report shows the first, full
// copies, and the highest.
func (r *Report) Section() *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "adaptive", Title: "The policy beside the best level", Data: r,
		Intro: fmt.Sprintf("Each side against the best fixed level in hindsight, cell by cell: geometric mean, worst, and the share of cells\n"+
			"within 3%%. Virtual time, %s, seed %d.", r.Cluster, r.Seed),
		Tables: []lab.Table{r.cells(), r.stops(), r.changes()},
	}
	names := slices.Compact(slices.Sorted(slices.Values(r.AsGood)))
	s.Tables[2].Notes = []string{fmt.Sprintf("Full copies are as good as ours, within 1%%, in %d cells of N = 5 above %d bytes: %s. Below it all sides are the same.",
		len(names), threshold, strings.Join(names, ", "))}
	return s
}

func (r *Report) cells() lab.Table {
	t := lab.Table{Title: "By networks and loads:", Rows: [][]string{{"N", "networks", "metric"}}}
	for rest := r.Rows; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Nodes == rest[0].Nodes && rest[n].Group == rest[0].Group && rest[n].Metric == rest[0].Metric {
			n++
		}
		line := []string{fmt.Sprint(rest[0].Nodes), rest[0].Group, rest[0].Metric}
		head := len(t.Rows[0]) == len(line)
		for i, row := range rest[:n] {
			if strings.HasPrefix(row.Side, "level") && i < n-1 {
				continue
			}
			if head {
				t.Rows[0] = append(t.Rows[0], row.Side)
			}
			line = append(line, fmt.Sprintf("%.2f / %.3g / %.0f%%", row.Mean, row.Worst, 100*row.Within))
		}
		t.Rows, rest = append(t.Rows, line), rest[n:]
	}
	if head := t.Rows[0]; strings.HasPrefix(head[len(head)-1], "level") {
		head[len(head)-1] = "highest level"
	}
	return t
}

func (r *Report) stops() lab.Table {
	t := lab.Table{
		Title: "One of four followers stops under 70% load of 64 KB entries: medians of several runs, and the worst of them.",
		Rows:  [][]string{{"network", "follower", "side", "p50", "p99", "longest without a commit", "worst", "bytes of riders", "worst"}},
	}
	for _, x := range r.Outages {
		t.Rows = append(t.Rows, []string{
			x.Network, x.What, x.Side, short(x.P50), short(x.P99), short(x.Stall), short(x.WorstStall),
			fmt.Sprintf("%.2f%%", 100*x.Extra), fmt.Sprintf("%.2f%%", 100*x.WorstExtra),
		})
	}
	return t
}

func (r *Report) changes() lab.Table {
	t := lab.Table{
		Title: "The network changes under load, and changes back: when ours is settled, and how it compares before and after.",
		Rows:  [][]string{{"change", "settled", "before", "after"}},
	}
	for _, x := range r.Shifts {
		t.Rows = append(t.Rows, []string{x.What, short(x.Settled), fmt.Sprintf("%.2f", x.Before), fmt.Sprintf("%.2f", x.After)})
	}
	return t
}
