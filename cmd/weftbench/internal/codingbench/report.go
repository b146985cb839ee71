// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package codingbench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// noise is how far two figures of a machine that is busy with nodes and clients
// may lie apart by chance.
const noise = 0.1

// Report makes a section of what was measured.
func Report(cfg Config, cells []*Cell) *lab.Section {
	s := &lab.Section{
		Verb: "coding", Rounds: cfg.Rounds,
		Title: "Real processes: coding on beside off",
		Intro: fmt.Sprintf("kvdemo nodes as processes of their own on one machine with the clients (%d CPUs, %s, %s/%s), real sockets, logs synced\n"+
			"before anything is acknowledged. All clients call the leader, closed-loop. `full` is `--coding off`, `coded` is\n"+
			"`--coding on` with everything coded that the policy wants, whatever its size. Under each load a side first works\n"+
			"for %v that does not count; then the sides take turns: %d rounds of %v. Ratios are medians of the rounds, with the least and the greatest. CPU is for a\n"+
			"call, until the nodes rest again; sent is bytes to other nodes for a byte of value. Egress is what the node's card lets\n"+
			"through in all (`--egress`), votes, heartbeats and acknowledgements first; loopback itself has no bound, and there the CPUs are\nwhat all wait for.",
			runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, cfg.Warm, cfg.Rounds, cfg.Time),
		Data: cells,
	}
	if cfg.Noise {
		s.Verb, s.Title = "coding --noise", "Real processes: coding off beside off"
		s.Intro = "Here `coded` has coding off, too: what differs between the sides, differs by chance.\n\n" + s.Intro
	}
	setting := func(c *Cell) [2]int { return [2]int{c.Nodes, c.Egress} }
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(c *Cell) bool { return setting(c) != setting(cells[0]) })
		if n < 0 {
			n = len(cells)
		}
		s.Tables = append(s.Tables, table(cells[:n]))
		cells = cells[n:]
	}
	return s
}

func table(cells []*Cell) lab.Table {
	t := lab.Table{
		Title: fmt.Sprintf("%d nodes, egress %s (full → coded)", cells[0].Nodes, lab.Rate(8*int64(cells[0].Egress))),
		Rows:  [][]string{{"value", "clients", "calls/s", "ratio", "p50 ms", "p99 ms", "CPU leader µs", "CPU all µs", "sent by leader", "sent by all"}},
	}
	var better, same, worse []string
	var ratios []float64
	for pair := range slices.Chunk(cells, len(sides)) {
		f, c := pair[0], pair[1]
		ratio := c.PerSecond.Ratio(f.PerSecond)
		t.Rows = append(t.Rows, []string{
			lab.Bytes(f.Size), fmt.Sprint(f.Clients),
			fmt.Sprintf("%.0f → %.0f", f.PerSecond.Median(), c.PerSecond.Median()), ratio.Text("%.2f"),
			fmt.Sprintf("%.2f → %.2f", f.P50, c.P50), fmt.Sprintf("%.2f → %.2f", f.P99, c.P99),
			fmt.Sprintf("%.0f → %.0f", f.perCall(f.LeaderCPU), c.perCall(c.LeaderCPU)),
			fmt.Sprintf("%.0f → %.0f", f.perCall(f.AllCPU), c.perCall(c.AllCPU)),
			fmt.Sprintf("%.2f → %.2f", f.Sent(), c.Sent()),
			fmt.Sprintf("%.2f → %.2f", f.perByte(f.AllBytes), c.perByte(c.AllBytes)),
		})
		name := fmt.Sprintf("%s x %d", lab.Bytes(f.Size), f.Clients)
		x := ratio.Median()
		ratios = append(ratios, x)
		switch {
		case x > 1+noise:
			better = append(better, name)
		case x < 1-noise:
			worse = append(worse, fmt.Sprintf("%s (%.2f)", name, x))
		default:
			same = append(same, name)
		}
		if failed := f.Failed + c.Failed; failed > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %d calls with full copies and %d with coding failed.", name, f.Failed, c.Failed))
		}
	}
	t.Notes = append(t.Notes, fmt.Sprintf("All loads together: %.2f times the calls of full copies (geometric mean).", lab.GeometricMean(ratios)))
	for _, l := range []struct {
		says string
		list []string
	}{
		{fmt.Sprintf("Coding gets more than %.0f%% more calls through at", 100*noise), better},
		{fmt.Sprintf("Full copies are as good, within %.0f%%, at", 100*noise), same},
		{fmt.Sprintf("Full copies are more than %.0f%% better at", 100*noise), worse},
	} {
		if len(l.list) > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %s.", l.says, strings.Join(l.list, ", ")))
		}
	}
	return t
}
