// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Report puts what was measured into tables.
func Report(cfg Config, r *Results) *lab.Section {
	return &lab.Section{
		Verb: "reads --real", Rounds: cfg.Rounds,
		Title: "Linearizable reads with real processes and real sockets",
		Intro: fmt.Sprintf("Five kvdemo processes on one machine, whose connections go through relays that give each byte its delay in each direction: the\n"+
			"round trips are those of wan and geo above. %d clients near each node ask one thing after the other, over gRPC, with 1 ms\n"+
			"there and back, %.0f%% writes of %d B, %d keys; each row took %v, %d times in turns with the others, and has the medians;\n"+
			"behind ops a second and processor time stand the least and the greatest. All processes share the machine's processors, which bound the rows with\n"+
			"most reads. The rows of etcd are five processes of released etcd, with the same leader, heartbeats, delays and clients; its reads are linearizable, which\n"+
			"is its default, but for those of \"stale etcd\", which may be stale: a member answers from what it has.\n"+
			"The rows of ZooKeeper, with the same leader, delays and clients, may be stale, too; with \"sync\" a read asks the leader first. Every other row is Weft's.\n"+
			"Times are in ms; means are those of the sites' means. Each value that is read is one that was written\n"+
			"to its key; `weftbench torture --leases` checks that histories are linearizable.\n\n"+
			"In short:\n\n%s", cfg.Clients, 100*cfg.Writes, cfg.Value, cfg.Keys, cfg.Time, cfg.Rounds, strings.Join(inShort(r), "\n")),
		Tables: []lab.Table{wideTable(r.Rows), cpuTable(r.CPU)},
		Data:   r,
	}
}

// inShort returns the rows in which rosters are not first, and the processor time of a read at a
// responder as a share of a read by ReadIndex.
func inShort(r *Results) (lines []string) {
	lines = notFirst(r.Rows)
	for _, c := range r.CPU {
		if share, ok := share(r.CPU, c); ok {
			lines = append(lines, fmt.Sprintf("- %d nodes, %d readers: a read of Host at a responder takes %.3f of the processor time of one by ReadIndex.", c.Nodes, c.Readers, share))
		}
	}
	return lines
}

// measures are what rows are compared by; less is better.
var measures = []struct {
	name string
	of   func(Row) float64
	text func(Row) string
}{
	{"ops a second", func(r Row) float64 { return -r.Rate }, func(r Row) string { return fmt.Sprintf("%.0f", r.Rate) }},
	{"reads", func(r Row) float64 { return float64(r.ReadMean) }, func(r Row) string { return millis(r.ReadMean) + " ms" }},
	{"writes", func(r Row) float64 { return float64(r.WriteMean) }, func(r Row) string { return millis(r.WriteMean) + " ms" }},
}

// notFirst names, for each network, where etcd is ahead of a row, and where another row is ahead
// of both with responders.
func notFirst(rows []Row) (lines []string) {
	var networks []string
	for _, r := range rows {
		if !slices.Contains(networks, r.Network) {
			networks = append(networks, r.Network)
		}
	}
	for _, network := range networks {
		for _, m := range measures {
			lines = append(lines, comparedBy(rows, network, m.name, m.of, m.text)...)
		}
	}
	return lines
}

func comparedBy(rows []Row, network, name string, of func(Row) float64, text func(Row) string) (lines []string) {
	var best, roster, etcd *Row
	var behind []string
	better := func(a, b *Row) bool { return b == nil || of(*a) < of(*b) }
	for i := range rows {
		r := &rows[i]
		if r.Network != network || weaker(r.Policy) { // what may be stale is not compared
			continue
		}
		if better(r, best) {
			best = r
		}
		if strings.HasPrefix(r.Policy, "roster") && better(r, roster) {
			roster = r
		}
		if r.Policy == "etcd" {
			etcd = r
		}
	}
	for i := range rows {
		if r := &rows[i]; etcd != nil && r.Network == network && r != etcd && !weaker(r.Policy) && of(*r) > of(*etcd) {
			behind = append(behind, fmt.Sprintf("%s (%s)", r.Policy, text(*r)))
		}
	}
	if len(behind) > 0 {
		lines = append(lines, fmt.Sprintf("- %s, %s: etcd, with %s, is ahead of %s.", network, name, text(*etcd), strings.Join(behind, " and ")))
	}
	if roster != nil && best != roster && !strings.HasPrefix(best.Policy, "roster") {
		lines = append(lines, fmt.Sprintf("- %s, %s: %s, with %s, is ahead of rosters (%s).", network, name, best.Policy, text(*best), text(*roster)))
	}
	if etcd != nil && roster != nil && of(*roster) < of(*etcd) {
		lines = append(lines, fmt.Sprintf("- %s, %s: rosters are ahead of etcd, %s beside %s.", network, name, text(*roster), text(*etcd)))
	}
	return lines
}

// share returns the processor time of a read by a roster as a share of that of a read by ReadIndex.
func share(rows []CPU, c CPU) (float64, bool) {
	for _, base := range rows {
		if base.Nodes == c.Nodes && base.Readers == c.Readers && base.Policy != c.Policy && c.Policy == "roster" {
			return float64(c.PerRead) / float64(base.PerRead), true
		}
	}
	return 0, false
}

func wideTable(rows []Row) lab.Table {
	t := lab.Table{
		Title: "What clients saw:",
		Rows:  [][]string{{"network", "policy", "ops a second", "reads, mean", "writes, mean", "answered by a lease of the node", "failed", "reads by site, median / 99%"}},
	}
	for _, r := range rows {
		var sites []string
		for _, l := range r.Reads {
			sites = append(sites, millis(l.P50)+" / "+millis(l.P99))
		}
		t.Rows = append(t.Rows, []string{
			r.Network, r.Policy, r.Rates.Text("%.0f"), millis(r.ReadMean), millis(r.WriteMean), fmt.Sprintf("%.1f%%", 100*r.Local),
			strconv.Itoa(r.Failed), strings.Join(sites, ", "),
		})
	}
	return t
}

func cpuTable(rows []CPU) lab.Table {
	t := lab.Table{
		Title: "Processor time of a read of Host at a follower, that of all nodes' processes; readers are goroutines of the follower's process, and nobody writes:",
		Rows:  [][]string{{"nodes", "policy", "readers", "reads a second", "processor µs a read", "of ReadIndex"}},
	}
	for _, c := range rows {
		part := "-"
		if share, ok := share(rows, c); ok {
			part = fmt.Sprintf("%.3f", share)
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(c.Nodes), c.Policy, strconv.Itoa(c.Readers), fmt.Sprintf("%.0f", c.Rate),
			c.Rounds.Text("%.2f"), part})
	}
	return t
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64)
}
