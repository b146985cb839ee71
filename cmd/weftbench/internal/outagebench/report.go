// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package outagebench

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Report puts the rows into a table.
func Report(cfg Config, rows []Row) *lab.Section {
	s := &lab.Section{
		Verb: "outage", Rounds: cfg.Rounds,
		Title: "Real processes: a follower is away, and comes back",
		Intro: fmt.Sprintf("kvdemo nodes as processes of their own, values of %s, %d clients of the leader, %.0f Mbit/s out of each node. A\n"+
			"follower is killed, is away for %v, and is started again. Load is a share of what full copies can do, or a closed\n"+
			"loop. Calls a second, and latencies in ms, median / 99%% / worst: for %v with all nodes, while it is away, and until it has\n"+
			"applied what the leader has; how long that takes; the entries that it missed; and what the leader sends\n"+
			"meanwhile, for a byte that is written. Medians of %d rounds, in which the sides take turns; behind calls a second, the least\n"+
			"and the greatest.", lab.Bytes(cfg.Size), clients, float64(cfg.Egress)*8/1e6, cfg.Away, cfg.Before, cfg.Rounds),
		Data: rows,
	}
	t := lab.Table{
		Title: "Its clients, and the follower's time:",
		Rows:  [][]string{{"N", "load", "coding", "before /s", "away /s", "back /s", "before ms", "away ms", "back ms", "takes", "missed", "leader sends"}},
	}
	type cell struct {
		nodes int
		load  float64
		side  string
	}
	byCell, order := map[cell][]Row{}, []cell{}
	for _, r := range rows {
		c := cell{r.Nodes, r.Load, r.Side}
		if byCell[c] == nil {
			order = append(order, c)
		}
		byCell[c] = append(byCell[c], r)
	}
	for _, c := range order {
		t.Rows = append(t.Rows, cells(byCell[c]))
	}
	s.Tables = append(s.Tables, t)
	return s
}

// cells returns the line of the rounds of one cell.
func cells(rounds []Row) []string {
	of := func(figure func(Row) float64) lab.Rounds { return lab.RoundsOf(rounds, figure) }
	share := "closed"
	if rounds[0].Load > 0 {
		share = fmt.Sprintf("%.0f%%", 100*rounds[0].Load)
	}
	line := []string{fmt.Sprint(rounds[0].Nodes), share, rounds[0].Side}
	phases := []func(Row) Phase{
		func(r Row) Phase { return r.Before }, func(r Row) Phase { return r.Away }, func(r Row) Phase { return r.Back },
	}
	for _, phase := range phases {
		line = append(line, of(func(r Row) float64 { return phase(r).PerSecond() }).Text("%.0f"))
	}
	for _, phase := range phases {
		latency := func(of func(Phase) time.Duration) float64 {
			return ms(lab.MedianTime(rounds, func(r Row) time.Duration { return of(phase(r)) }))
		}
		line = append(line, fmt.Sprintf("%.0f / %.0f / %.0f", latency(func(p Phase) time.Duration { return p.P50 }),
			latency(func(p Phase) time.Duration { return p.P99 }), latency(func(p Phase) time.Duration { return p.Max })))
	}
	return append(line, fmt.Sprintf("%.1f s", of(func(r Row) float64 { return r.Back.Took.Seconds() }).Median()),
		fmt.Sprintf("%.0f", of(func(r Row) float64 { return float64(r.Missed) }).Median()),
		fmt.Sprintf("%.2f", of(func(r Row) float64 { return r.Sent }).Median()))
}
