// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package outagebench

import (
	"fmt"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

// Report puts the rows into a table.
func Report(cfg Config, rows []Row) *virtual.Section {
	s := &virtual.Section{
		Verb:  "outage",
		Title: "Real processes: a follower is away, and comes back",
		Intro: fmt.Sprintf("kvdemo nodes as processes of their own, values of %s, %d clients of the leader, %.0f Mbit/s out of each node. A\n"+
			"follower is killed, is away for %v, and is started again. Load is a share of what full copies can do, or a closed\n"+
			"loop. Calls a second, and latencies in ms, median / 99%% / worst: for %v with all nodes, while it is away, and until it has\n"+
			"applied what the leader has; how long that takes; the entries that it missed; and what the leader sends\n"+
			"meanwhile, for a byte that is written.", virtual.Bytes(cfg.Size), clients, float64(cfg.Egress)*8/1e6, cfg.Away, cfg.Before),
		Data: rows,
	}
	t := virtual.Table{
		Title: "Its clients, and the follower's time:",
		Rows:  [][]string{{"N", "load", "coding", "before /s", "away /s", "back /s", "before ms", "away ms", "back ms", "takes", "missed", "leader sends"}},
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, r.cells())
	}
	s.Tables = append(s.Tables, t)
	return s
}

func (r *Row) cells() []string {
	share := "closed"
	if r.Load > 0 {
		share = fmt.Sprintf("%.0f%%", 100*r.Load)
	}
	cells := []string{fmt.Sprint(r.Nodes), share, r.Side}
	phases := []Phase{r.Before, r.Away, r.Back}
	for _, p := range phases {
		cells = append(cells, fmt.Sprintf("%.0f", p.PerSecond()))
	}
	for _, p := range phases {
		cells = append(cells, fmt.Sprintf("%.0f / %.0f / %.0f", ms(p.P50), ms(p.P99), ms(p.Max)))
	}
	return append(cells, fmt.Sprintf("%.1f s", r.Back.Took.Seconds()), fmt.Sprint(r.Missed), fmt.Sprintf("%.2f", r.Sent))
}
