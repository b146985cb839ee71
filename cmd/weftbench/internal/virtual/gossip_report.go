// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// report puts the rows into a table.
func (cfg *Gossip) report(rows []gossipRow) *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "virtual gossip",
		Title: "When followers have the payloads",
		Intro: fmt.Sprintf("Values of %s, %s ms between members, 1 Gbit each, disks that sync in 0.1 ms. Load is a share of what\n"+
			"full copies can do. For every follower and entry, in ms of virtual time, median / 90%% / 99%% / worst: the wait from when\n"+
			"it learns that the entry is committed until it can apply it, and its staleness, from the commit at the leader until then.\n"+
			"Prompt is the share that did not wait at all. The last columns are what clients see. On an idle network, eager gossip is\n"+
			"prompt while sending a follower's units takes no longer than a message's delay.",
			lab.Bytes(cfg.Size), lab.Millis(cfg.Delay)),
		Data: rows,
	}
	t := lab.Table{Title: "Waits and staleness:", Rows: [][]string{{"N", "load", "side", "wait", "stale", "prompt", "p50", "p99"}}}
	for _, r := range rows {
		load := fmt.Sprintf("%.0f%%", 100*r.Load)
		if r.Load == 0 {
			load = "idle"
		}
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Voters), load, r.Side, lab.Spread(r.WaitNS[:]...), lab.Spread(r.StaleNS[:]...), fmt.Sprintf("%.1f%%", 100*r.Prompt),
			lab.Millis(r.P50), lab.Millis(r.P99),
		})
	}
	var sides []string
	for _, side := range cfg.Sides {
		sides = append(sides, fmt.Sprintf("- %s: %s", side.Name, side.About))
	}
	t.Notes = []string{strings.Join(sides, "\n")}
	s.Tables = append(s.Tables, t)
	return s
}
