// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weftraft/weft/cmd/weftbench/internal/compartments"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/svg"
)

func (b *Bench) compartments() compartments.Config {
	cfg := compartments.Default()
	cfg.Seed, cfg.Progress = b.Seed, b.Progress
	if b.Short {
		cfg.Clients, cfg.Time = []int{1, 100}, cfg.Time/10
	}
	return cfg
}

// ablation runs all steps, with clients in shared frames: they cost the leader less than by gRPC, and
// clients that leave the leader so gain less.
func (b *Bench) ablation(batches bool) (cfg compartments.Config, cells []compartments.Cell, err error) {
	cfg = b.compartments()
	cells, err = cfg.Ablation(b.Ctx, hostnode.Lean, batches)
	return cfg, cells, err
}

// ends are the first and the last step.
func ends() [2]string {
	steps := compartments.Steps()
	return [2]string{steps[0].Name, steps[len(steps)-1].Name}
}

// byClients is a part of Figure 18.
func byClients(batches bool) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		cfg, cells, err := b.ablation(batches)
		if err != nil {
			return nil, err
		}
		return latencyByRate(cfg, cells, ends()), nil
	}
}

// latencyByRate draws two steps.
func latencyByRate(cfg compartments.Config, cells []compartments.Cell, steps [2]string) *Result {
	rate, took := newGrid("throughput", "clients", "commands a second", true), newGrid("median latency", "clients", "ms", false)
	chart := svg.Chart{Title: "median latency by throughput", X: "commands a second", Y: "ms", LogY: true}
	for _, s := range steps {
		line := svg.Series{Name: s}
		for _, n := range cfg.Clients {
			c := compartments.At(cells, s, n)
			rate.put(strconv.Itoa(n), s, c.Rate())
			took.put(strconv.Itoa(n), s, millis(c.Median))
			line.X, line.Y = append(line.X, c.Rate()), append(line.Y, millis(c.Median))
		}
		chart.Series = append(chart.Series, line)
	}
	res := (&Result{}).show(rate).show(took)
	res.Charts = []svg.Chart{chart}
	res.Says = gain(cells, steps[0], steps[1])
	return res
}

// gain compares the best of two steps.
func gain(cells []compartments.Cell, first, last string) string {
	a, b := compartments.Best(cells, first), compartments.Best(cells, last)
	return fmt.Sprintf("Weft from %q to %q: %.0f to %.0f commands a second, %.1fx, on %d and %d machines", first, last, a.Rate(), b.Rate(), b.Rate()/a.Rate(), a.Plan.Machines(), b.Plan.Machines())
}

// withFewClients is Figure 18c.
func withFewClients(b *Bench) (*Result, error) {
	cfg := b.compartments()
	cfg.Clients = []int{1, 10, 100}
	g := newGrid("median latency", "clients", "ms", false)
	for _, batches := range []bool{false, true} {
		cells, err := cfg.Ablation(b.Ctx, hostnode.Lean, batches)
		if err != nil {
			return nil, err
		}
		for _, s := range compartments.Steps() {
			for _, n := range cfg.Clients {
				group := strconv.Itoa(n)
				if batches {
					group += ", batches"
				}
				g.put(group, s.Name, millis(compartments.At(cells, s.Name, n).Median))
			}
		}
	}
	res := (&Result{}).show(g)
	e := ends()
	res.Says = fmt.Sprintf("one client waits %.2f ms at one leader, and %.2f ms with all compartments", g.at("1", e[0]), g.at("1", e[1]))
	return res, nil
}

// withLeaders is Figure 19: each member leads a group, and then all compartments.
func withLeaders(b *Bench) (*Result, error) {
	res, steps := &Result{}, [2]string{compartments.EachLeads, ends()[1]}
	for i, batches := range []bool{false, true} {
		cfg := b.compartments()
		cells, err := cfg.Leaders(b.Ctx, hostnode.Lean, batches)
		if err != nil {
			return nil, err
		}
		part, how := latencyByRate(cfg, cells, steps), []string{"without batches", "with batches"}[i]
		for i := range part.Tables {
			part.Tables[i].Title += ", " + how
		}
		part.Charts[0].Title += ", " + how
		if i > 0 {
			res.Says += "; "
		}
		res.Says += how + ": " + part.Says
		res.Tables, res.Charts = slices.Concat(res.Tables, part.Tables), slices.Concat(res.Charts, part.Charts)
	}
	return res, nil
}

// byStep is a part of Figure 20.
func byStep(batches bool) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		_, cells, err := b.ablation(batches)
		if err != nil {
			return nil, err
		}
		g := newGrid("peak throughput", "step", "commands a second", true)
		for _, s := range compartments.Steps() {
			g.put(s.Name, "steps of Weft", compartments.Best(cells, s.Name).Rate())
		}
		res := (&Result{}).show(g)
		res.Says = gain(cells, ends()[0], ends()[1])
		return res, nil
	}
}
