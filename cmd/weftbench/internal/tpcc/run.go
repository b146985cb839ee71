// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"context"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/wire"
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
	Processors    int // of one machine on which all nodes are processes, as in machines.Plan
	PerRange      int // warehouses of a range
	Leaders       int // so many nodes lead all ranges; 0: leaders are spread over all nodes
	Failed        int // nodes that are down
	Terminals     int // of a warehouse
	Think         bool
	Customers     int // of a district
	Items         int
	Text          int     // times as long as specified
	Rate          float64 // of a node's link, bytes a second
	Delay, Sync   time.Duration
	Warm, Time    time.Duration
	Seed          uint64
	Bug           Bug
}

// Outcome is what was measured of a run.
type Outcome struct {
	Counts    [kinds]int
	NewOrders float64 // a minute
	All       float64 // transactions a second
	P50, P99  time.Duration
	Means     [kinds]time.Duration
	Wire      float64       // bytes a second, over all links
	Busiest   float64       // share of the most loaded link out
	Processor float64       // share of the most loaded processor, in virtual time
	CPU       time.Duration // of all processes together
	Payloads  []int         // bytes of commands
	Checked   int           // replicas on whose state the conditions hold
}

// sim is a run in virtual time. Its leader is the first of a range's members.
type sim struct {
	*machines.World
	load    *load
	side    Side
	members [][]*member // by range
}

// member is a replica of a range, with its state.
type member struct {
	*machines.Member
	state state
	rows  memory
}

func (m *member) view(do func(get func(key string) []byte)) { do(m.rows.get) }

func (m *member) propose(command []byte, done func()) { m.Propose(command, done) }

func (w *sim) leader(r *ranged) *member { return w.members[r.id-1][0] }

func (w *sim) work(at *ranged, cost time.Duration, then func()) { w.leader(at).Node.Work(cost, then) }

func (w *sim) visit(home, other *ranged, ask request, then func(rows [][]byte)) {
	from, to := w.leader(home).Node, w.leader(other).Node
	if from == to {
		w.load.serve(other, ask, then)
		return
	}
	from.Call(to, wire.ClassAppend, ask.size(), func() {
		w.load.serve(other, ask, func(rows [][]byte) {
			bytes := askBytes
			for _, r := range rows {
				bytes += len(r)
			}
			to.Call(from, wire.ClassAppend, bytes, func() { then(rows) })
		})
	})
}

// newSim makes nodes and ranges, and waits until each range has its leader.
func newSim(plan Plan, side Side) (*sim, error) {
	w := &sim{side: side}
	w.World = machines.New(machines.Plan{
		Nodes: plan.Nodes, Failed: plan.Failed, Rate: plan.Rate, Delay: plan.Delay, Seed: plan.Seed, Processors: plan.Processors, Sync: plan.Sync,
	})
	w.load = newLoad(plan, w)
	for i, r := range w.load.ranges {
		if err := w.found(i, r); err != nil {
			return nil, err
		}
	}
	if !w.Until(time.Minute, w.led) {
		w.Fail("not each range has its leader")
	}
	return w, w.Err()
}

// found begins a range.
func (w *sim) found(i int, r *ranged) error {
	p := &w.load.plan
	base, peers := w.load.scale.fill(p.Seed, r.first, p.PerRange), p.placed(i)
	var members []*member
	for _, id := range peers {
		n := w.Nodes[id-1]
		if n.Failed {
			continue
		}
		m := &member{state: state{bug: p.Bug}, rows: memory{base, map[string][]byte{}}}
		apply := func(command []byte) error { return m.state.apply(&m.rows, command) }
		var err error
		if m.Member, err = n.Join(machines.Place{Group: r.id, Peers: peers, Coding: w.side.coding(), Apply: apply}); err != nil {
			return err
		}
		members = append(members, m)
	}
	w.members = append(w.members, members)
	r.lead = members[0]
	members[0].Campaign()
	return nil
}

func (w *sim) led() bool {
	return !slices.ContainsFunc(w.members, func(members []*member) bool { return !members[0].Leads() })
}

// quiet reports whether no transaction is under way, and each replica has applied all.
func (w *sim) quiet() bool {
	return w.load.active == 0 && !slices.ContainsFunc(w.members, func(members []*member) bool {
		return slices.ContainsFunc(members, func(m *member) bool { return m.Applied != members[0].Applied })
	})
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
	w.load.begin()
	w.Pass(settled + plan.Warm)
	w.load.counts = true
	sent, spent := w.Usage()
	w.Pass(plan.Time)
	w.load.counts, w.load.ending = false, true
	after, spentAfter := w.Usage()
	o = w.load.measure()
	for i := range sent {
		bytes := float64(after[i] - sent[i])
		o.Wire += bytes / plan.Time.Seconds()
		o.Busiest = max(o.Busiest, bytes/plan.Time.Seconds()/plan.Rate)
		o.Processor = max(o.Processor, (spentAfter[i]-spent[i]).Seconds()/plan.Time.Seconds())
	}
	if !w.Until(time.Minute, w.quiet) {
		w.Fail("%d transactions do not end, or replicas lag", w.load.active)
	}
	if w.Err() == nil && !w.led() {
		w.Fail("a leader has changed")
	}
	if w.Err() != nil {
		return o, w.Err()
	}
	ranges := make([][]*kept, len(w.members))
	for i, members := range w.members {
		for _, m := range members {
			ranges[i] = append(ranges[i], &kept{m.rows, m.state.commands})
		}
	}
	o.Checked, err = check(w.load.scale, ranges)
	return o, err
}
