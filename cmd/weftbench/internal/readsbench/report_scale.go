// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// ScaleReport puts rows into tables.
func ScaleReport(cfg ScaleConfig, rows []ScaleRow) *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "scale-reads",
		Title: "Reads a second by the number of replicas",
		Intro: fmt.Sprintf("Up to %d voters, and learners beyond; round trips of %v. Each node has one processor, which a read takes for %v and a\n"+
			"message, sent or received, for %v: that is the model of what things cost, and no batches are made. %d clients near each node\n"+
			"ask one read after the other, so that processors are always busy; besides there are %d writes a second.\n\nIn short:\n\n%s",
			cfg.Voters, scaleTrip, cfg.Read, cfg.Message, cfg.Clients, cfg.Writes, strings.Join(scaleInShort(rows), "\n")),
		Data: rows,
	}
	t := lab.Table{
		Title: "Reads a second, and what part that is of so many times what one node does:",
		Rows:  [][]string{{"nodes"}},
	}
	leader := lab.Table{
		Title: "What the leader's processor does for writes, leases and heartbeats while nobody reads, and what each other node adds:",
		Rows:  [][]string{{"nodes"}},
	}
	at := map[int]int{}
	for _, r := range rows {
		if r.Nodes == 1 {
			t.Rows[0], leader.Rows[0] = append(t.Rows[0], r.Policy), append(leader.Rows[0], r.Policy)
		}
		if at[r.Nodes] == 0 {
			at[r.Nodes] = len(t.Rows)
			t.Rows, leader.Rows = append(t.Rows, []string{strconv.Itoa(r.Nodes)}), append(leader.Rows, []string{strconv.Itoa(r.Nodes)})
		}
		i := at[r.Nodes]
		t.Rows[i] = append(t.Rows[i], fmt.Sprintf("%.0f (%.2f)", r.Rate, r.Slope))
		leader.Rows[i] = append(leader.Rows[i], fmt.Sprintf("%s + %s", percentOf(r.Leader), percentOf(r.Added)))
	}
	s.Tables = []lab.Table{t, leader}
	return s
}

func scaleInShort(rows []ScaleRow) (lines []string) {
	for _, p := range policies() {
		slope, added, most, wrong := 1.0, 0.0, 1, 0
		for _, r := range rows {
			if r.Policy == p.Name {
				slope, added, most, wrong = min(slope, r.Slope), max(added, r.Added), max(most, r.Nodes), wrong+r.Wrong
			}
		}
		if p.Ours {
			lines = append(lines, fmt.Sprintf("- `%s`: up to %d nodes serve at least %.3f of so many times the reads of one; a node adds at most %.2f%% to the work of the leader.",
				p.Name, most, slope, 100*added))
		}
		if wrong > 0 {
			lines = append(lines, fmt.Sprintf("- `%s`: %d answers were not linearizable.", p.Name, wrong))
		}
	}
	return lines
}
