// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/leases"
)

// results are the measurements of "weftbench reads".
type results struct {
	Cells      []Cell  `json:"cells"`
	Responders []Cell  `json:"responders"`
	Holds      []Hold  `json:"holds"`
	Paths      []Path  `json:"paths"`
	Phases     []Phase `json:"phases"`
}

// report puts results into tables.
func report(cfg Config, r *results) *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "reads",
		Title: "Linearizable reads: the policies side by side",
		Intro: fmt.Sprintf("Five nodes, %d clients near each that ask one thing after the other of the node near them, values of %d B.\n"+
			"A message takes %v of a processor and a read %v; cards of 1 Gbit, disks that sync in 0.1 ms. Times are in ms of virtual time; means are those\n"+
			"of the sites' means, because clients at a fast site do more.\n\n"+
			"In short:\n\n%s", cfg.Clients, cfg.Value, messageWork, readWork, strings.Join(r.inShort(), "\n")),
		Data: r,
	}
	s.Tables = append(s.Tables, aboutPolicies(), aboutNetworks())
	s.Tables = append(s.Tables, r.rates(cfg)...)
	s.Tables = append(s.Tables, r.beaten(), r.latencies(cfg), r.paths(), r.holds(), r.responders(), r.phases(), r.wrong())
	return s
}

func aboutPolicies() lab.Table {
	t := lab.Table{Title: "The policies:", Rows: [][]string{{"policy", "what it does", "linearizable"}}}
	for _, p := range policies() {
		t.Rows = append(t.Rows, []string{p.Name, p.About, yes(p.Safe)})
	}
	return t
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func aboutNetworks() lab.Table {
	t := lab.Table{
		Title: "The networks, with round trips in ms (the first site leads, those with a star have a responder):",
		Rows:  [][]string{{"network", "from", "to the sites behind it"}},
	}
	for _, n := range Networks() {
		name := func(i int) string {
			if slices.Contains(n.Responders, leases.NodeID(i+1)) {
				return n.Sites[i] + "*"
			}
			return n.Sites[i]
		}
		for a, row := range n.RTT {
			var to []string
			for i, d := range row {
				to = append(to, fmt.Sprintf("%s %v", name(a+1+i), d))
			}
			t.Rows = append(t.Rows, []string{n.Name, name(a), strings.Join(to, ", ")})
		}
	}
	return t
}

// find returns a cell.
func (r *results) find(network, policy string, keys int, writes float64) (c Cell) {
	for _, c := range r.Cells {
		if c.Network == network && c.Policy == policy && c.Keys == keys && c.Mix == writes {
			return c
		}
	}
	return c
}

// rates has a table for each network and number of keys.
func (r *results) rates(cfg Config) (tables []lab.Table) {
	for _, n := range Networks() {
		for _, keys := range cfg.Keys {
			t := lab.Table{Title: fmt.Sprintf("Ops a second by the share of writes, in %s with %d keys:", n.Name, keys)}
			head := []string{"policy"}
			for _, w := range cfg.Writes {
				head = append(head, percent(w))
			}
			t.Rows = append(t.Rows, head)
			for _, p := range policies() {
				row := []string{p.Name}
				for _, w := range cfg.Writes {
					row = append(row, fmt.Sprintf("%.0f", r.find(n.Name, p.Name, keys, w).Rate))
				}
				t.Rows = append(t.Rows, row)
			}
			tables = append(tables, t)
		}
	}
	return tables
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', -1, 64) + "%" }

// better is the best other policy by a measure, and its advantage as a factor.
type better struct {
	policy string
	times  float64
}

func (b better) String() string {
	if b.times <= 1+noise {
		return "-"
	}
	return fmt.Sprintf("%s, %.2fx", b.policy, b.times)
}

// A difference below noise counts as none. Clients of all policies draw from the same sequence, but
// not at the same times.
const noise = 0.01

// measures are the measures by which policies are compared; for each measure, less is better.
var measures = []struct {
	name string
	of   func(Cell) float64
}{
	{"ops a second", func(c Cell) float64 { return 1 / c.Rate }},
	{"reads, mean", func(c Cell) float64 { return float64(c.ReadMean) }},
	{"writes, mean", func(c Cell) float64 { return float64(c.WriteMean) }},
}

// best returns the best of the other safe policies by a measure.
func (r *results) best(ours Cell, of func(Cell) float64) (b better) {
	for _, p := range policies() {
		if !p.Safe || p.Ours {
			continue
		}
		c := r.find(ours.Network, p.Name, ours.Keys, ours.Mix)
		if mine, other := of(ours), of(c); other > 0 && mine/other > b.times {
			b = better{p.Name, mine / other}
		}
	}
	return b
}

// beaten names the cells in which another safe policy is better than ours.
func (r *results) beaten() lab.Table {
	t := lab.Table{
		Title: "Where another safe policy is better by more than 1%, up to 30% writes, and how many times (in cells that are not here none is):",
		Rows:  [][]string{{"network", "keys", "writes", "ours", measures[0].name, measures[1].name, measures[2].name}},
	}
	for _, c := range r.Cells {
		if p := policy(c.Policy); !p.Ours || c.Mix > 0.3 {
			continue
		}
		row := []string{c.Network, strconv.Itoa(c.Keys), percent(c.Mix), c.Policy}
		named := false
		for _, m := range measures {
			text := r.best(c, m.of).String()
			named = named || text != "-"
			row = append(row, text)
		}
		if named {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// latencyWrites is the share of writes of which latencies are shown.
const latencyWrites = 0.1

func (r *results) latencies(cfg Config) lab.Table {
	t := lab.Table{
		Title: fmt.Sprintf("Latency at %s writes with %d keys, median / 99%%, by site:", percent(latencyWrites), cfg.Keys[0]),
		Rows:  [][]string{{"network", "policy", "what", "site 1 (leader)", "site 2", "site 3", "site 4", "site 5"}},
		Notes: []string{"Sites are in the order of the table of networks."},
	}
	for _, c := range r.Cells {
		if c.Mix != latencyWrites || c.Keys != cfg.Keys[0] {
			continue
		}
		reads, writes := []string{c.Network, c.Policy, "reads"}, []string{c.Network, c.Policy, "writes"}
		for i := range c.Reads {
			reads, writes = append(reads, c.Reads[i].text()), append(writes, c.Writes[i].text())
		}
		t.Rows = append(t.Rows, reads, writes)
	}
	return t
}

func (l Latency) text() string { return short(l.P50) + " / " + short(l.P99) }

// short returns a time in ms with one digit after the point, or two digits below 1 ms.
func short(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.2f", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f", d.Seconds()*1e3)
}

func (r *results) paths() lab.Table {
	t := lab.Table{
		Title: "Messages between nodes for a read by a client near a responder, in wan, with no writes:",
		Rows:  [][]string{{"policy", "messages a read", "mean"}},
		Notes: []string{"Counted: all that nodes send, less what they send in the same time while nobody reads."},
	}
	for _, p := range r.Paths {
		t.Rows = append(t.Rows, []string{p.Policy, fmt.Sprintf("%.3f", p.Messages), short(p.Mean)})
	}
	return t
}

func (r *results) holds() lab.Table {
	t := lab.Table{
		Title: "How a write delays reads of its key at responders:",
		Rows:  [][]string{{"network", "policy", "late reads a write", "delay of late reads, median / 99%", "in round trips", "how long after the write"}},
		Notes: []string{"One write at a time from the leader's site, 400 reads a second of its key at every responder. A read is late if it takes longer\n" +
			"than without a write. A round trip is the one from the leader to the farthest responder, which is what the write takes: 40 ms in flat,\n" +
			"where all nodes are equally far from each other."},
	}
	for _, h := range r.Holds {
		in := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(h.Trip)) }
		t.Rows = append(t.Rows, []string{
			h.Network, h.Policy, fmt.Sprintf("%.1f", float64(h.Late)/holdWrites),
			short(h.Delay.P50) + " / " + short(h.Delay.P99), in(h.Delay.P50) + " / " + in(h.Delay.P99), short(h.Window),
		})
	}
	return t
}

func (r *results) responders() lab.Table {
	t := lab.Table{
		Title: fmt.Sprintf("Numbers of responders beside the leader, nearest first, at %s writes:", percent(respondersWrites)),
		Rows:  [][]string{{"network", "policy", "responders", "ops a second", "reads, mean", "writes, mean", "local reads"}},
	}
	for _, c := range r.Responders {
		t.Rows = append(t.Rows, []string{
			c.Network, c.Policy, strconv.Itoa(c.Responders), fmt.Sprintf("%.0f", c.Rate), short(c.ReadMean), short(c.WriteMean), percentOf(c.Local),
		})
	}
	return t
}

func percentOf(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func (r *results) phases() lab.Table {
	t := lab.Table{
		Title: "A load that moves, in wan: who should be responders, and what clients see when the tuner has found out:",
		Rows:  [][]string{{"load", "responders", "reads, mean", "writes, mean", "local reads", "who they are at the end"}},
		Notes: []string{"Clients near every site ask 200 times a second, those near the sites named of keys of one half, a, those near others of the other, b.\n" +
			"The second half of a phase counts."},
	}
	for i := range shapes {
		for _, p := range r.Phases {
			if p.Number == i+1 {
				t.Rows = append(t.Rows, []string{strconv.Itoa(p.Number) + ": " + p.Load, p.Way, short(p.Read), short(p.Write), percentOf(p.Local), p.Responders})
			}
		}
	}
	return t
}

// wrongBy returns how many answers of a policy were not linearizable, in all runs.
func (r *results) wrongBy(policy string) (n int) {
	for _, c := range append(slices.Clone(r.Cells), r.Responders...) {
		if c.Policy == policy {
			n += c.Wrong
		}
	}
	for _, h := range r.Holds {
		if h.Policy == policy {
			n += h.Wrong
		}
	}
	return n
}

func (r *results) wrong() lab.Table {
	t := lab.Table{Title: "Answers that were not linearizable, in all runs above:", Rows: [][]string{{"policy", "wrong answers"}}}
	for _, p := range policies() {
		t.Rows = append(t.Rows, []string{p.Name, strconv.Itoa(r.wrongBy(p.Name))})
	}
	return t
}
