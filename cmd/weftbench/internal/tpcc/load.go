// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/world"
)

// surroundings are where transactions run: machines in virtual time, or the process of a node. They call one function at
// a time.
type surroundings interface {
	Now() time.Duration
	After(d time.Duration, then func())
	Fail(format string, args ...any)
	// work takes time of the processor of a range's leader.
	work(at *ranged, cost time.Duration, then func())
	// visit has the leader of another range serve a request of the home range's leader.
	visit(home, other *ranged, ask request, then func(rows [][]byte))
}

// replica is a leader's replica of a range.
type replica interface {
	// view shows rows as they are applied now; a row that is not there is nil.
	view(do func(get func(key string) []byte))
	// propose has the range replicate a command, and calls done when the leader has applied it.
	propose(command []byte, done func())
}

// ranged is a range: warehouses, their Raft group, and what its leader keeps in memory.
type ranged struct {
	id     uint64
	first  int     // warehouse
	lead   replica // nil where another process leads the range
	locks  locks
	held   map[uint64][]want // locks, by transaction
	looked map[[2]int]int    // where the oldest open order of a district was seen
}

// lock takes locks for a transaction, beside those that it has.
func (r *ranged) lock(txn uint64, wants []want, then func()) {
	r.held[txn] = append(r.held[txn], wants...)
	r.locks.all(wants, then)
}

// free lets go of a transaction's locks.
func (r *ranged) free(txn uint64) {
	wants := r.held[txn]
	delete(r.held, txn)
	r.locks.free(wants)
}

// load is terminals and their transactions, all of a run or those of a process.
type load struct {
	surroundings
	plan   Plan
	scale  scale
	ranges []*ranged

	last    uint64 // transaction
	step    uint64 // between two transactions: other processes have the numbers between
	active  int
	ending  bool
	counts  bool
	took    [kinds][]time.Duration
	payload []int // bytes of commands
}

func newLoad(p Plan, in surroundings) *load {
	w := &load{surroundings: in, plan: p, step: 1, last: firstTxn, scale: scale{p.Ranges * p.PerRange, p.Customers, p.Items, p.Text}}
	for i := range p.Ranges {
		w.ranges = append(w.ranges, &ranged{
			id: uint64(i) + 1, first: i * p.PerRange, locks: locks{rows: map[string]*lock{}, bug: p.Bug}, held: map[uint64][]want{}, looked: map[[2]int]int{},
		})
	}
	return w
}

// leader returns the node that leads a range.
func (p *Plan) leader(i int) uint64 {
	nodes := p.placed(i)
	return nodes[slices.IndexFunc(nodes, func(id uint64) bool { return id <= uint64(p.Nodes-p.Failed) })]
}

// placed returns the nodes of a range. The first that is not down leads.
func (p *Plan) placed(i int) (nodes []uint64) {
	first := i % p.Nodes
	if p.Leaders > 0 {
		first = i % p.Leaders
	}
	for j := range replicas {
		at := (first + j) % p.Nodes
		if p.Leaders > 0 && j > 0 { // the others are spread over all nodes behind the leader
			at = (first + 1 + (i/p.Leaders*(replicas-1)+j-1)%(p.Nodes-1)) % p.Nodes
		}
		nodes = append(nodes, uint64(at)+1)
	}
	return nodes
}

// mine returns whether a range has a key.
func (w *load) mine(r *ranged) func(key string) bool {
	return func(key string) bool {
		table, warehouse, _, _ := parts(key)
		return table > 0 && table <= records && warehouse/w.plan.PerRange == int(r.id)-1
	}
}

func (w *load) rangeOf(warehouse int) *ranged { return w.ranges[warehouse/w.plan.PerRange] }

// begin begins the terminals of the ranges that are led here.
func (w *load) begin() {
	for i := range w.scale.warehouses * w.plan.Terminals {
		x := &terminal{w: w, warehouse: i % w.scale.warehouses, draws: world.NewDraws(w.plan.Seed, 1000+uint64(i))}
		x.district = i / w.scale.warehouses % perWarehouse
		spread := time.Millisecond
		if w.plan.Think {
			spread = w.plan.Warm
		}
		if w.rangeOf(x.warehouse).lead != nil {
			w.After(settled+x.draws.Within(0, spread), x.next)
		}
	}
}

// settled is the time in which leaders learn that their members take units.
const settled = time.Second

// serve does what a transaction asks of a range that is led here, and then calls done.
func (w *load) serve(r *ranged, ask request, done func(rows [][]byte)) {
	switch ask.kind {
	case lockRows:
		r.lock(ask.txn, ask.wants, func() {
			var rows [][]byte
			r.lead.view(func(get func(string) []byte) {
				for _, w := range ask.wants {
					rows = append(rows, get(w.key))
				}
			})
			done(rows)
		})
	case intent:
		w.propose(r, ask.encode(), func() { done(nil) })
	case commit:
		w.propose(r, ask.encode(), func() { r.free(ask.txn); done(nil) })
	case letGo:
		r.free(ask.txn)
		done(nil)
	}
}

func (w *load) propose(r *ranged, command []byte, done func()) {
	if w.counts {
		w.payload = append(w.payload, len(command))
	}
	r.lead.propose(command, done)
}

func (w *load) done(t *txn) {
	if w.counts {
		w.took[t.kind] = append(w.took[t.kind], w.Now()-t.begun)
	}
}

// measure returns what is counted of transactions.
func (w *load) measure() (o Outcome) {
	for kind, took := range w.took {
		o.Counts[kind] = len(took)
		sum := time.Duration(0)
		for _, d := range took {
			sum += d
		}
		o.Means[kind] = sum / time.Duration(max(len(took), 1))
	}
	all := slices.Concat(w.took[:]...)
	o.NewOrders = float64(o.Counts[newOrder]) / w.plan.Time.Minutes()
	o.All = float64(len(all)) / w.plan.Time.Seconds()
	o.P50, o.P99, o.Payloads = lab.Quantile(all, 0.5), lab.Quantile(all, 0.99), w.payload
	return o
}
