// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package failoverbench

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

// Report puts the rows into a table.
func Report(cfg Config, rows []Row) *virtual.Section {
	s := &virtual.Section{
		Verb:  "failover",
		Title: "How long nothing commits after the leader is lost",
		Intro: fmt.Sprintf("%d leaders a row, killed under load (values of %s at random times, %.0f%% of what full copies\n"+
			"can do at 1 Gbit) at the same instants on all sides. In ms of virtual time, median / 90%% / worst: from the kill to the\n"+
			"next commit of a client; from the election to the first commit, where payloads are recovered; and how much more that\n"+
			"is than with %s, at the same seed, in round trips.",
			cfg.Seeds, virtual.Bytes(cfg.Size), 100*cfg.Load, cfg.Sides[0].Name),
		Data: rows,
	}
	t := virtual.Table{
		Title: fmt.Sprintf("A round trip takes %s ms, a sync 0.1 ms; an election timeout is 100 to 200 ms:", virtual.Millis(2*cfg.Delay)),
		Rows:  [][]string{{"N", "side", "kill to commit", "election to commit", "more, round trips"}},
	}
	base := map[int]Row{}
	for _, r := range rows {
		if r.Side == cfg.Sides[0].Name {
			base[r.Voters] = r
		}
		more := "-"
		if b := base[r.Voters]; r.Side != b.Side {
			d := r.more(b)
			more = fmt.Sprintf("%.2f / %.2f / %.2f", trips(d, 0.5, r.RTT), trips(d, 0.9, r.RTT), trips(d, 1, r.RTT))
		}
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Voters), r.Side,
			spread(r.each(func(g Gap) time.Duration { return g.Whole })),
			spread(r.each(func(g Gap) time.Duration { return g.Commit })), more,
		})
	}
	s.Tables = append(s.Tables, t)
	return s
}

func (r Row) each(what func(Gap) time.Duration) (times []time.Duration) {
	for _, g := range r.Gaps {
		times = append(times, what(g))
	}
	return times
}

// more returns, seed by seed, how much longer a new leader took to commit than
// on another side.
func (r Row) more(base Row) (times []time.Duration) {
	for i, g := range r.Gaps {
		times = append(times, g.Commit-base.Gaps[i].Commit)
	}
	return times
}

func trips(d []time.Duration, q float64, rtt time.Duration) float64 {
	return float64(virtual.Quantile(d, q)) / float64(rtt)
}

func spread(d []time.Duration) string {
	ms := func(q float64) string { return virtual.Millis(virtual.Quantile(d, q)) }
	return ms(0.5) + " / " + ms(0.9) + " / " + ms(1)
}
