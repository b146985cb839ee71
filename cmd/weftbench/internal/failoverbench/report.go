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
			"next commit of a client; from the votes to the first commit, where payloads are recovered; from there to the first\n"+
			"commit of something new; and how much more the latter two are than with %s, at the same seed, in round trips.",
			cfg.Seeds, virtual.Bytes(cfg.Size), 100*cfg.Load, cfg.Sides[0].Name),
		Data: rows,
	}
	t := virtual.Table{
		Title: fmt.Sprintf("A round trip takes %s ms, a sync 0.1 ms; an election timeout is 100 to 200 ms:", virtual.Millis(2*cfg.Delay)),
		Rows:  [][]string{{"N", "side", "kill to commit", "votes to commit", "more", "votes to new commit", "more"}},
	}
	base := map[int]Row{}
	for _, r := range rows {
		if r.Side == cfg.Sides[0].Name {
			base[r.Voters] = r
		}
		b := base[r.Voters]
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Voters), r.Side, spread(r.each(whole)),
			spread(r.each(commit)), r.trips(b, commit), spread(r.each(fresh)), r.trips(b, fresh),
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

func whole(g Gap) time.Duration  { return g.Whole }
func commit(g Gap) time.Duration { return g.Commit }
func fresh(g Gap) time.Duration  { return g.Fresh }

// more returns, seed by seed, how much longer something took than on another
// side.
func (r Row) more(base Row, what func(Gap) time.Duration) (times []time.Duration) {
	for i, g := range r.Gaps {
		times = append(times, what(g)-what(base.Gaps[i]))
	}
	return times
}

func (r Row) trips(base Row, what func(Gap) time.Duration) string {
	if r.Side == base.Side {
		return "-"
	}
	d := r.more(base, what)
	at := func(q float64) float64 { return float64(virtual.Quantile(d, q)) / float64(r.RTT) }
	return fmt.Sprintf("%.2f / %.2f / %.2f", at(0.5), at(0.9), at(1))
}

func spread(d []time.Duration) string {
	return virtual.Spread(virtual.Quantile(d, 0.5), virtual.Quantile(d, 0.9), virtual.Quantile(d, 1))
}
