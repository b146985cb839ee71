// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// Report puts the runs into tables.
func Report(cfg Config, r Results) *lab.Section {
	s := &lab.Section{
		Virtual: true, Page: true, Verb: "compartments", Title: "Data: compartments, one at a time",
		Intro: fmt.Sprintf("Written by `weftbench compartments`, in virtual time: each member, reader and gateway is a process on a machine of its own with one\n"+
			"processor, and takes what the costs of [costs.md](costs.md) say. Replicas are real ones. A frame is %v under way, links carry\n"+
			"%s, a write to a log is durable after %v; clients are closed loops of commands of %d B, which the state machine\n"+
			"forgets. Without batches a command is an entry, and an entry a message. %v are measured, after each client's first answer.\n\n%s",
			cfg.Delay, lab.Rate(int64(cfg.Rate*8)), cfg.Sync, cfg.Value, cfg.Time, aboutSteps()),
		Data: r,
	}
	for _, way := range cfg.Ways {
		for _, batches := range []bool{false, true} {
			cells := only(r.Steps, way, batches)
			s.Tables = append(s.Tables, rates(cfg, way, batches, cells), bottlenecks(cells))
		}
	}
	s.Tables = append(s.Tables, beside(r.Steps), named(r.Names), zoned(cfg, r.Zones), mixed(r.Mixes), readers(r.Readers), deployments(r.Deployments))
	return s
}

func only(cells []Cell, way hostnode.Kind, batches bool) (of []Cell) {
	for _, c := range cells {
		if c.Way == way.String() && c.Batches == batches {
			of = append(of, c)
		}
	}
	return of
}

func aboutSteps() string {
	var b strings.Builder
	for _, s := range Steps() {
		fmt.Fprintf(&b, "- **%s**: %s.\n", s.Name, s.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + "%" }

// of names a table's clients.
func of(way hostnode.Kind, batches bool) string {
	text := "clients by gRPC"
	if way == hostnode.Lean {
		text = "clients in shared frames"
	}
	if batches {
		return text + ", with batches"
	}
	return text + ", without batches"
}

// rates has commands a second by the number of clients.
func rates(cfg Config, way hostnode.Kind, batches bool, cells []Cell) lab.Table {
	t := lab.Table{Heading: "## " + strings.ToUpper(of(way, batches)[:1]) + of(way, batches)[1:], Title: "Commands a second, and their median latency in ms, by the number of clients:", Rows: [][]string{{"step", "machines"}}}
	for _, n := range cfg.Clients {
		t.Rows[0] = append(t.Rows[0], strconv.Itoa(n))
	}
	t.Rows[0] = append(t.Rows[0], "best", "of the first")
	for _, s := range Steps() {
		best := Best(cells, s.Name)
		row := []string{s.Name, strconv.Itoa(best.Plan.Machines())}
		for _, n := range cfg.Clients {
			if c := At(cells, s.Name, n); c != nil {
				row = append(row, number(c.Rate())+", "+millis(c.Median.Seconds()*1e3))
			}
		}
		t.Rows = append(t.Rows, append(row, number(best.Rate()), fmt.Sprintf("%.1fx", best.Rate()/Best(cells, Steps()[0].Name).Rate())))
	}
	return t
}

func millis(ms float64) string {
	if ms < 10 {
		return strconv.FormatFloat(ms, 'f', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}

// bottlenecks has the processors at the best number of clients.
func bottlenecks(cells []Cell) lab.Table {
	t := lab.Table{Title: "Processors at the best number of clients, the busiest of each kind:", Rows: [][]string{{"step", "clients", "leader", "follower", "gateway", "leader, µs a command", "all, µs a command", "bottleneck"}}}
	for _, s := range Steps() {
		c := Best(cells, s.Name)
		row := []string{s.Name, strconv.Itoa(c.Plan.Clients)}
		for _, kind := range []string{"leader", "follower", "gateway"} {
			row = append(row, shareOf(c, kind))
		}
		t.Rows = append(t.Rows, append(row, micros(c.LeaderPer.Seconds()), micros(c.AllPer.Seconds()), c.Busiest().Kind))
	}
	return t
}

func micros(seconds float64) string { return strconv.FormatFloat(1e6*seconds, 'f', 1, 64) }

func shareOf(c Cell, kind string) string {
	i := slices.IndexFunc(c.Use, func(u Use) bool { return u.Kind == kind })
	if i < 0 {
		return "-"
	}
	return percent(c.Use[i].Most)
}

// paper has the figures of the paper, in commands a second: without batches, and with.
var paper = []struct {
	Name     string
	Machines string
	Rate     [2]float64
}{
	{"MultiPaxos", "3", [2]float64{25_000, 200_000}},
	{"compartmentalized", "46 and 50 to 56", [2]float64{200_000, 900_000}},
}

// beside sets the first and the last step beside the paper's.
func beside(cells []Cell) lab.Table {
	t := lab.Table{
		Heading: "## Beside the paper",
		Title:   "Commands a second of the first and the last step, and their ratio (Compartmentalized Consensus, Figures 18 and 20: MultiPaxos and all compartments):",
		Rows:    [][]string{{"clients", "batches", "paper", "machines", "Weft", "machines"}},
	}
	steps := Steps()
	for i, batches := range []bool{false, true} {
		for _, way := range []hostnode.Kind{hostnode.RPC, hostnode.Lean} {
			mine := only(cells, way, batches)
			if len(mine) == 0 {
				continue
			}
			first, last := Best(mine, steps[0].Name), Best(mine, steps[len(steps)-1].Name)
			t.Rows = append(t.Rows, []string{
				way.String(), map[bool]string{false: "no", true: "yes"}[batches],
				fmt.Sprintf("%.0f to %.0f, %.1fx", paper[0].Rate[i], paper[1].Rate[i], paper[1].Rate[i]/paper[0].Rate[i]), paper[0].Machines + " and " + []string{"46", "50 to 56"}[i],
				fmt.Sprintf("%.0f to %.0f, %.1fx", first.Rate(), last.Rate(), last.Rate()/first.Rate()), fmt.Sprintf("%d and %d", first.Plan.Machines(), last.Plan.Machines()),
			})
		}
	}
	t.Notes = []string{
		"A call at a gateway has three hops more than one at the leader, of which the last two are those of its home, which is not the leader:\n" +
			"there it hears of the commit, and applies the command. Names come into play where members forward: see below.",
		"The paper's machines have eight processors, their logs are in memory, commands are empty, and one log has all commands. Here a machine has\n" +
			"one processor, logs are on disks, a replica is acceptor and learner in one, and groups order the keys of each group by itself.",
	}
	return t
}

// mixed has calls a second by the share of reads.
func mixed(cells []Cell) lab.Table {
	t := lab.Table{Heading: "## Reads", Title: "Calls a second by the share of linearizable reads (clients by gRPC, with batches), and the busiest processor:", Rows: [][]string{{"machines", "reads by"}}}
	for _, r := range mixReads {
		t.Rows[0] = append(t.Rows[0], percent(r)+" reads")
	}
	for i, c := range cells {
		if i%len(mixReads) == 0 {
			t.Rows = append(t.Rows, []string{c.Plan.words(), c.Plan.readsBy()})
		}
		last := &t.Rows[len(t.Rows)-1]
		*last = append(*last, number(c.Rate())+", "+c.Busiest().Kind)
	}
	t.Notes = []string{"A query of a client at a gateway costs the gateway what a read costs a member, and its home, which answers, as much again; with the frames\nbetween them, and what the policy asks of the leader or of a majority. Readers answer clients of their own.\nWith roster leases every voter is a responder: it answers reads by its lease, and a write waits until all of them have it."}
	return t
}

// readers has reads by the number of readers.
func readers(rows []ReaderRow) lab.Table {
	t := lab.Table{
		Title: fmt.Sprintf("Readers, each with %d clients that read, while %d clients write; and what a write costs the leader while nobody reads, with what each\n"+
			"reader adds: %d clients with small writes, and %d with large ones:", readClients, writeClients, smallClients, writeClients),
		Rows: [][]string{{"readers", "reads/s", "of so many times one", "16 B: µs", "each", "bytes", "each", "64 KB coded: µs", "each", "bytes", "each"}},
	}
	for _, r := range rows {
		slope := "-"
		if r.Readers > 0 {
			slope = strconv.FormatFloat(r.Slope, 'f', 3, 64)
		}
		row := []string{strconv.Itoa(r.Readers), number(r.Reads), slope}
		for _, w := range []PerWrite{r.Small, r.Large} {
			row = append(row, micros(w.Processor.Seconds()), more(r.Readers, w.MoreProcessor), number(w.Egress), more(r.Readers, w.MoreEgress))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{
		"A reader's rounds take longer where the leader has more of them, and a round then serves more reads: so many readers may do more than so many\n" +
			"times one. A voter passes the data on to the readers, and the leader joins appends to a reader that follow each other within 5ms.",
		"What coding takes of processors is not in the costs: bytes of coded writes are to be compared, not their times.",
	}
	return t
}

func more(readers int, share float64) string {
	if readers == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*share, 'f', 2, 64) + "%"
}
