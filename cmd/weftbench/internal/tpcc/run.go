// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"context"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// Side is a way to replicate, in the same core.
type Side int

// The sides.
const (
	Full     Side = iota // full copies
	Forced               // every entry in units, one for each follower
	Adaptive             // coded replication as it is by default
)

// replicas is the number of voters of a range.
const replicas = 5

func (s Side) coding() *raft.Coding {
	switch s {
	case Forced:
		return &raft.Coding{Threshold: 1, Policy: ecraft.Fixed(ecraft.Levels(replicas))}
	case Adaptive:
		return &raft.Coding{}
	}
	return nil
}

// Plan is a deployment and its load.
type Plan struct {
	Nodes, Ranges int
	PerRange      int // warehouses of a range
	Leaders       int // so many nodes lead all ranges; 0: leaders are spread over all nodes
	Failed        int // nodes that are down
	Terminals     int // of a warehouse
	Think         bool
	Customers     int // of a district
	Items         int
	Text          int     // times as long as specified
	Rate          float64 // of a node's link, bytes a second
	Delay         time.Duration
	Warm, Time    time.Duration
	Seed          uint64
	bug           bugKind
}

// Outcome is what was measured of a run.
type Outcome struct {
	Counts    [kinds]int
	NewOrders float64 // a minute
	All       float64 // transactions a second
	P50, P99  time.Duration
	Means     [kinds]time.Duration
	Wire      float64 // bytes a second, over all links
	Busiest   float64 // share of the most loaded link out
	Processor float64 // share of the most loaded processor
	Payloads  []int   // bytes of commands
	Checked   int     // replicas on whose state the conditions hold
}

// sim is a run.
type sim struct {
	*machines.World
	plan   Plan
	side   Side
	scale  scale
	ranges []*ranged

	txns    uint64
	active  int
	ending  bool
	counts  bool
	took    [kinds][]time.Duration
	payload []int
}

// ranged is a range: warehouses, their Raft group, and what its leader keeps in memory.
type ranged struct {
	id      uint64
	first   int // warehouse
	members []*member
	leader  *member
	locks   locks
	looked  map[[2]int]int // where the oldest open order of a district was seen
}

// member is a replica of a range, with its state.
type member struct {
	*machines.Member
	w     *sim
	state *state
}

// propose has the range replicate a command, and calls done when the leader has applied it.
func (m *member) propose(command []byte, done func()) {
	if m.w.counts {
		m.w.payload = append(m.w.payload, len(command))
	}
	m.Propose(command, done)
}

func (w *sim) rangeOf(warehouse int) *ranged { return w.ranges[warehouse/w.plan.PerRange] }

func (w *sim) done(t *txn) {
	if w.counts {
		w.took[t.kind] = append(w.took[t.kind], w.Now()-t.begun)
	}
}

// newSim makes nodes and ranges, and waits until each range has its leader.
func newSim(plan Plan, side Side) (*sim, error) {
	w := &sim{plan: plan, side: side, scale: scale{plan.Ranges * plan.PerRange, plan.Customers, plan.Items, plan.Text}}
	w.World = machines.New(machines.Plan{Nodes: plan.Nodes, Failed: plan.Failed, Rate: plan.Rate, Delay: plan.Delay, Seed: plan.Seed})
	for i := range plan.Ranges {
		if err := w.found(i); err != nil {
			return nil, err
		}
	}
	if !w.Until(time.Minute, w.led) {
		w.Fail("not each range has its leader")
	}
	return w, w.Err()
}

// found begins a range: its leader is the first of its nodes that is not down.
func (w *sim) found(i int) error {
	p := &w.plan
	first := i % p.Nodes
	if p.Leaders > 0 {
		first = i % p.Leaders
	}
	r := &ranged{id: uint64(i) + 1, first: i * p.PerRange, locks: locks{rows: map[string]*lock{}, bug: p.bug}, looked: map[[2]int]int{}}
	base := w.scale.fill(p.Seed, r.first, p.PerRange)
	var peers []uint64
	for j := range replicas {
		at := (first + j) % p.Nodes
		if p.Leaders > 0 && j > 0 { // the others are spread over all nodes behind the leader
			at = (first + 1 + (i/p.Leaders*(replicas-1)+j-1)%(p.Nodes-1)) % p.Nodes
		}
		peers = append(peers, uint64(at)+1)
	}
	w.ranges = append(w.ranges, r)
	for _, id := range peers {
		n := w.Nodes[id-1]
		if n.Failed {
			continue
		}
		m := &member{w: w, state: newState(base, p.bug)}
		var err error
		if m.Member, err = n.Join(machines.Place{Group: r.id, Peers: peers, Coding: w.side.coding(), Apply: m.state.apply}); err != nil {
			return err
		}
		r.members = append(r.members, m)
	}
	r.leader = r.members[0]
	r.leader.Campaign()
	return nil
}

func (w *sim) led() bool {
	for _, r := range w.ranges {
		if !r.leader.Leads() {
			return false
		}
	}
	return true
}

// quiet reports whether no transaction is under way, and each replica has applied all.
func (w *sim) quiet() bool {
	if w.active > 0 {
		return false
	}
	for _, r := range w.ranges {
		for _, m := range r.members {
			if m.Applied != r.leader.Applied {
				return false
			}
		}
	}
	return true
}

// Run runs a plan, and checks the conditions at its end on the state of each replica.
func Run(ctx context.Context, plan Plan, side Side) (o Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	w, err := newSim(plan, side)
	if err != nil {
		return o, err
	}
	for i := range w.scale.warehouses * plan.Terminals {
		x := &terminal{w: w, warehouse: i % w.scale.warehouses, draws: world.NewDraws(plan.Seed, 1000+uint64(i))}
		x.district = i / w.scale.warehouses % perWarehouse
		spread := time.Millisecond
		if plan.Think {
			spread = plan.Warm
		}
		w.After(settled+x.draws.Within(0, spread), x.next)
	}
	w.Pass(settled + plan.Warm)
	w.counts = true
	sent, spent := w.Usage()
	w.Pass(plan.Time)
	w.counts, w.ending = false, true
	after, spentAfter := w.Usage()
	w.measure(&o)
	for i := range sent {
		bytes := float64(after[i] - sent[i])
		o.Wire += bytes / plan.Time.Seconds()
		o.Busiest = max(o.Busiest, bytes/plan.Time.Seconds()/plan.Rate)
		o.Processor = max(o.Processor, (spentAfter[i]-spent[i]).Seconds()/plan.Time.Seconds())
	}
	if !w.Until(time.Minute, w.quiet) {
		w.Fail("%d transactions do not end, or replicas lag", w.active)
	}
	if w.Err() == nil && !w.led() {
		w.Fail("a leader has changed")
	}
	if w.Err() != nil {
		return o, w.Err()
	}
	o.Checked, err = w.check()
	return o, err
}

// settled is the time in which leaders learn that their members take units.
const settled = time.Second

func (w *sim) measure(o *Outcome) {
	var all []time.Duration
	for kind, took := range w.took {
		o.Counts[kind] = len(took)
		sum := time.Duration(0)
		for _, d := range took {
			sum += d
		}
		o.Means[kind] = sum / time.Duration(max(len(took), 1))
		all = append(all, took...)
	}
	o.NewOrders = float64(o.Counts[newOrder]) / w.plan.Time.Minutes()
	o.All = float64(len(all)) / w.plan.Time.Seconds()
	o.P50, o.P99, o.Payloads = lab.Quantile(all, 0.5), lab.Quantile(all, 0.99), w.payload
}
