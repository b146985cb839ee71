// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/tpcc"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

// replication are the sides of the transactions.
var replication = []struct {
	name string
	side tpcc.Side
}{{weft, tpcc.Adaptive}, {"full copies", tpcc.Full}, {"1 unit forced", tpcc.Forced}}

// deployment is a row of the figure.
type deployment struct {
	mbit, text, failed, leaders int
	think                       bool
}

func (d deployment) words() string {
	leaders := "all nodes lead"
	if d.leaders == 1 {
		leaders = "one node leads"
	} else if d.leaders > 0 {
		leaders = fmt.Sprintf("%d nodes lead", d.leaders)
	}
	words := fmt.Sprintf("text %dx, %d Mbit/s, %s, %d failed", d.text, d.mbit, leaders, d.failed)
	if d.think {
		words += ", with think times"
	}
	return words
}

// leading is the number of nodes that lead where leaders are not spread. The paper turns the rebalancing of
// leaders off, and does not say where they were.
const leading = 4

func deployments() (all []deployment) {
	for _, leaders := range []int{0, leading} {
		for _, mbit := range []int{100, 1000} {
			for _, text := range []int{1, 8} {
				all = append(all, deployment{mbit: mbit, text: text, leaders: leaders})
			}
		}
		for _, failed := range []int{1, 2} {
			all = append(all, deployment{mbit: 100, text: 8, leaders: leaders, failed: failed})
		}
	}
	return append(all, deployment{mbit: 100, text: 1, think: true}, deployment{mbit: 100, text: 8, think: true})
}

func (b *Bench) transactions(d deployment) tpcc.Plan {
	p := tpcc.Plan{
		Nodes: 12, Ranges: 24, PerRange: 2, Terminals: 2, Leaders: d.leaders, Failed: d.failed, Customers: 30, Items: 1000, Text: d.text,
		Rate: float64(d.mbit) * 1e6 / 8, Delay: 4 * ms, Warm: 2 * time.Second, Time: 500 * ms, Seed: b.Seed, Think: d.think,
	}
	if d.think {
		p.Ranges, p.Terminals, p.Warm, p.Time = 6, 10, 30*time.Second, 30*time.Second
	}
	if b.Short {
		p.Ranges, p.Warm, p.Time = 3, p.Warm/10, p.Time/10
	}
	return p
}

// byTransactions is Figure 14.
func byTransactions(b *Bench) (*Result, error) {
	grids := []*grid{
		newGrid("New-Orders", "deployment", "a minute", true), newGrid("all transactions", "deployment", "a second", true),
		newGrid("latency, median", "deployment", "ms", false), newGrid("latency, 99%", "deployment", "ms", false),
		newGrid("mean latency of New-Order", "deployment", "ms", false),
		newGrid("bytes on all links", "deployment", "MB/s", false), newGrid("the most loaded link", "deployment", "% of its rate", false),
	}
	checked := 0
	for _, d := range deployments() {
		for _, s := range replication {
			o, err := tpcc.Run(b.Ctx, b.transactions(d), s.side)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", d.words(), s.name, err)
			}
			checked += o.Checked
			for i, v := range []float64{o.NewOrders, o.All, millis(o.P50), millis(o.P99), millis(o.Means[0]), o.Wire / 1e6, 100 * o.Busiest} {
				grids[i].put(d.words(), s.name, v)
			}
		}
		fmt.Fprintln(b.Progress, d.words())
	}
	// Throughput is compared; think times bound it, so that those rows say nothing.
	res := result(grids[1])
	for _, g := range append([]*grid{grids[0]}, grids[2:]...) {
		res.show(g)
	}
	last := &res.Tables[len(res.Tables)-1]
	last.Notes = []string{fmt.Sprintf("At the end of each run the conditions 1 to 10 and 12 of clause 3.3.2 hold on the state of each replica (%d in all), and the replicas of a range are equal.", checked)}
	return res, nil
}

// onThisMachine is a deployment of five nodes, as processes or in virtual time.
func (b *Bench) onThisMachine(d deployment) tpcc.Plan {
	p := b.transactions(d)
	p.Nodes, p.Ranges, p.PerRange, p.Terminals, p.Items, p.Warm, p.Time = 5, 10, 1, 5, 500, 10*time.Second, 5*time.Second
	p.Processors, p.Delay, p.Sync = runtime.NumCPU(), 10*us, ms // of the simulation
	if b.Short {
		p.Ranges, p.Customers, p.Items, p.Warm, p.Time = 5, 10, 100, 100*ms, 200*ms
	}
	return p
}

// transactionsByProcesses runs deployments by processes that send at most 100 Mbit/s each, beside a simulation of the same.
func transactionsByProcesses(b *Bench) (*Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	deployments := []deployment{{text: 1}, {text: 8}, {text: 8, leaders: 1}, {text: 8, failed: 1}, {text: 8, failed: 2}}
	if b.Short {
		deployments = deployments[3:4]
	}
	p := b.onThisMachine(deployment{})
	figures := []struct {
		title, format string
		of            func(tpcc.Outcome) float64
	}{
		{"transactions a second", "%.0f", func(o tpcc.Outcome) float64 { return o.All }},
		{"New-Orders a minute", "%.0f", func(o tpcc.Outcome) float64 { return o.NewOrders }},
		{"latency, median, ms", "%.1f", func(o tpcc.Outcome) float64 { return millis(o.P50) }},
		{"latency, 99%, ms", "%.1f", func(o tpcc.Outcome) float64 { return millis(o.P99) }},
		{"the most loaded link, % of its rate", "%.0f", func(o tpcc.Outcome) float64 { return 100 * o.Busiest }},
		{"processor time of all processes a transaction, ms", "%.2f", func(o tpcc.Outcome) float64 { return millis(o.CPU) / (o.All * p.Time.Seconds()) }},
	}
	res, checked := &Result{Says: "transactions a second of Weft over full copies"}, 0
	for _, f := range figures {
		res.Tables = append(res.Tables, lab.Table{Title: f.title, Rows: [][]string{{"deployment", replication[0].name, replication[1].name, replication[2].name, "Weft over full copies", "simulated"}}})
	}
	for _, d := range deployments {
		d.mbit = 100
		var (
			plan      = b.onThisMachine(d)
			measured  [3][]tpcc.Outcome
			simulated [2]tpcc.Outcome
		)
		err := lab.Turns(b.Rounds, len(replication), func(_, side int) error {
			o, err := lab.Again(func() (tpcc.Outcome, error) {
				return tpcc.RunProcesses(b.Ctx, self, filepath.Join(b.Dir, "tpcc"), tpcc.Setting{Plan: plan, Side: replication[side].side})
			})
			measured[side], checked = append(measured[side], o), checked+o.Checked
			return err
		})
		for side := range simulated {
			if err == nil {
				simulated[side], err = tpcc.Run(b.Ctx, plan, replication[side].side)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.words(), err)
		}
		fmt.Fprintln(b.Progress, d.words())
		for i, f := range figures {
			row, rounds := []string{d.words()}, [3]lab.Rounds{}
			for side := range replication {
				rounds[side] = lab.RoundsOf(measured[side], f.of)
				row = append(row, rounds[side].Text(f.format))
			}
			ratio, sim := rounds[0].Ratio(rounds[1]), "-" // processes alone have all figures
			if full := f.of(simulated[1]); full > 0 {
				sim = fmt.Sprintf("%.2fx", f.of(simulated[0])/full)
			}
			res.Tables[i].Rows = append(res.Tables[i].Rows, append(row, ratio.Text("%.2fx"), sim))
			if i == 0 {
				res.Says += fmt.Sprintf("; %s: %.2fx, simulated %s", d.words(), ratio.Median(), sim)
			}
		}
	}
	res.Tables[len(figures)-1].Notes = []string{
		fmt.Sprintf("Five processes over package `weft`, with rows in Pebble: %d ranges with a warehouse and %d terminals each, %d customers a district and %d items; terminals are in the process that leads. A round begins with new processes, "+
			"whose leaders have %v to learn what links and processors take, and lasts %v. "+
			"What leaders ask of each other travels on the links that have the rate. Links in have no bound; the simulation knows neither what coding takes of a processor nor what Pebble does.", p.Ranges, p.Terminals, p.Customers, p.Items, p.Warm, p.Time),
		fmt.Sprintf("At the end of each run the conditions 1 to 10 and 12 of clause 3.3.2 hold on the state of each replica (%d in all), and the replicas of a range are equal.", checked),
	}
	return res, nil
}

// bySizes is Figure 1: the sizes of what our transactions replicate.
func bySizes(b *Bench) (*Result, error) {
	t := lab.Table{Title: "bytes of an entry's command, full copies, all nodes lead, 1000 Mbit/s", Rows: [][]string{{"text", "entries", "10%", "50%", "90%", "99%", "most", "4 KB and more"}}}
	chart := svg.Chart{Title: "sizes of commands", X: "bytes", Y: "% of the entries with so many, or fewer", LogX: true}
	large := map[int]float64{}
	for _, text := range []int{1, 8} {
		o, err := tpcc.Run(b.Ctx, b.transactions(deployment{mbit: 1000, text: text}), tpcc.Full)
		if err != nil {
			return nil, err
		}
		slices.Sort(o.Payloads)
		row, name := []string{strconv.Itoa(text) + "x", strconv.Itoa(len(o.Payloads))}, fmt.Sprintf("text %dx", text)
		for _, q := range []int{10, 50, 90, 99, 100} {
			row = append(row, strconv.Itoa(o.Payloads[max(len(o.Payloads)*q/100-1, 0)]))
		}
		below, _ := slices.BinarySearch(o.Payloads, 4<<10)
		large[text] = 100 * (1 - float64(below)/float64(len(o.Payloads)))
		t.Rows = append(t.Rows, append(row, figure(large[text])+"%"))
		line := svg.Series{Name: name}
		for q := 1; q <= 100; q++ {
			line.X, line.Y = append(line.X, float64(o.Payloads[max(len(o.Payloads)*q/100-1, 0)])), append(line.Y, float64(q))
		}
		chart.Series = append(chart.Series, line)
	}
	return &Result{
		Tables: []lab.Table{t}, Charts: []svg.Chart{chart},
		Says: fmt.Sprintf("with text as specified %s%% of the entries have 4 KB or more, and with text of 8 times the length %s%%", figure(large[1]), figure(large[8])),
	}, nil
}
