// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/replica"
)

// Step is one more compartment than the step before has.
type Step struct {
	Name  string
	About string
	// plan changes the plan of the step before.
	plan func(*Plan)
}

// voters is the size of every group: as in the paper, one may fail.
const voters = 3

// Steps lists the steps, from one leader with all clients on.
func Steps() []Step {
	return []Step{
		{"leader", "three members; all clients call at the leader, as clients of MultiPaxos do", func(p *Plan) {}},
		{"members", "clients call at every member, which forwards to the leader and answers", func(p *Plan) { p.Spread = true }},
		{"gateways", "eight gateways, which have no replica, take the clients' calls, batch, and answer", func(p *Plan) { p.Gateways = 8 }},
		{"groups", "three groups on the three members, each led by another; a key belongs to a group", func(p *Plan) { p.Groups = 3 }},
		{"machines", "five groups, with three machines each, and 24 gateways", func(p *Plan) { p.Groups, p.Members, p.Gateways = 5, 15, 24 }},
	}
}

// planOf returns the plan of a step, without its load.
func planOf(steps []Step, last int) Plan {
	p := Plan{Members: voters, Replicas: voters, Groups: 1}
	for _, s := range steps[:last+1] {
		s.plan(&p)
	}
	return p
}

// Config configures the runs.
type Config struct {
	Bed
	Clients  []int
	Ways     []hostnode.Kind
	Readers  []int
	Progress io.Writer
}

// Default has the setting of the page.
func Default() Config {
	return Config{
		Bed:     Bed{Costs: costs.Fitted, Delay: 50 * time.Microsecond, ZoneDelay: 5 * time.Millisecond, Rate: 10e9 / 8, Sync: 500 * time.Microsecond, Time: 150 * time.Millisecond, Value: 16, Seed: 1},
		Clients: []int{1, 10, 50, 100, 300, 600, 1000, 2000, 4000}, Ways: []hostnode.Kind{hostnode.RPC, hostnode.Lean}, Readers: []int{0, 1, 3, 10, 20},
	}
}

// Cell is a run of a step.
type Cell struct {
	Step    string
	Way     string
	Batches bool
	Outcome
}

// Results are all runs.
type Results struct {
	Steps   []Cell
	Mixes   []Cell
	Readers []ReaderRow
	Names   []NameRow
	Zones   []ZoneRow
	// Deployments are runs of some deployments, with the most clients.
	Deployments []Cell
}

// Run runs everything.
func (cfg Config) Run(ctx context.Context) (r Results, err error) {
	for _, way := range cfg.Ways {
		for _, batches := range []bool{false, true} {
			cells, err := cfg.Ablation(ctx, way, batches)
			if err != nil {
				return r, err
			}
			r.Steps = append(r.Steps, cells...)
		}
	}
	if r.Mixes, err = cfg.mixes(ctx); err != nil {
		return r, err
	}
	if r.Names, err = cfg.named(ctx); err != nil {
		return r, err
	}
	if r.Zones, err = cfg.zoned(ctx); err != nil {
		return r, err
	}
	if r.Readers, err = cfg.scale(ctx); err != nil {
		return r, err
	}
	r.Deployments, err = cfg.deployments(ctx)
	return r, err
}

// Ablation runs every step with every number of clients.
func (cfg Config) Ablation(ctx context.Context, way hostnode.Kind, batches bool) (cells []Cell, err error) {
	steps := Steps()
	for i, s := range steps {
		some, err := cfg.curve(ctx, s.Name, planOf(steps, i), way, batches)
		if err != nil {
			return nil, err
		}
		cells = append(cells, some...)
	}
	return cells, nil
}

// Leaders runs the last step, and before it three members of which each leads a group, with its clients:
// leaders in turns, as Mencius has them, and no other compartment.
func (cfg Config) Leaders(ctx context.Context, way hostnode.Kind, batches bool) (cells []Cell, err error) {
	steps := Steps()
	last := len(steps) - 1
	first, err := cfg.curve(ctx, EachLeads, Plan{Members: voters, Groups: voters}, way, batches)
	if err != nil {
		return nil, err
	}
	cells, err = cfg.curve(ctx, steps[last].Name, planOf(steps, last), way, batches)
	return slices.Concat(first, cells), err
}

// EachLeads names the runs in which each member leads, with its clients.
const EachLeads = "each leads"

// curve runs a plan with every number of clients.
func (cfg Config) curve(ctx context.Context, name string, p Plan, way hostnode.Kind, batches bool) (cells []Cell, err error) {
	for _, clients := range cfg.Clients {
		p.Way, p.Batches, p.Clients = way, batches, clients
		o, err := cfg.run(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s, %d clients: %w", name, clients, err)
		}
		cells = append(cells, Cell{name, way.String(), batches, o})
	}
	fmt.Fprintf(cfg.Progress, "%s, batches %v: %s: %.0f commands a second\n", way, batches, name, Best(cells, name).Rate())
	return cells, nil
}

func (cfg Config) run(ctx context.Context, p Plan) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	return run(cfg.Bed, p)
}

// Best returns the run of a step with the most calls a second.
func Best(cells []Cell, step string) (best Cell) {
	for _, c := range cells {
		if c.Step == step && c.Rate() > best.Rate() {
			best = c
		}
	}
	return best
}

// At returns the run of a step with a number of clients, or nil.
func At(cells []Cell, step string, clients int) *Cell {
	i := slices.IndexFunc(cells, func(c Cell) bool { return c.Step == step && c.Plan.Clients == clients })
	if i < 0 {
		return nil
	}
	return &cells[i]
}

// shares of reads among the calls of a mix.
var mixReads = []float64{0, 0.5, 0.9, 0.99}

// mixPlans are deployments for mixes of reads and writes: members alone, with readers, with gateways, and as responders. A read
// through a gateway costs the work of a read at the gateway and at its home.
func mixPlans() []Plan {
	return []Plan{{}, {Readers: 3}, {Readers: 6}, {Gateways: 8}, {Gateways: 8, Policy: replica.QuorumRead{}}, {Leases: true}, {Gateways: 8, Leases: true}}
}

// mixes runs mixes of reads and writes, with batches, at three members.
func (cfg Config) mixes(ctx context.Context) (cells []Cell, err error) {
	for _, p := range mixPlans() {
		for _, reads := range mixReads {
			p.Members, p.Groups, p.Spread, p.Batches, p.Reads, p.Clients, p.Way = voters, 1, true, true, reads, slices.Max(cfg.Clients), hostnode.RPC
			o, err := cfg.run(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s, %v of calls read: %w", p.words(), reads, err)
			}
			cells = append(cells, Cell{"mix", p.Way.String(), true, o})
		}
	}
	fmt.Fprintln(cfg.Progress, "mixes of reads and writes")
	return cells, nil
}
