// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package partitions runs puts over partitions of the keys in virtual time: a partition is a group, all
// groups are on the same machines, and each machine leads one. Full copies and Weft are real replicas;
// the protocols of papers are small drivers, which put the same bytes on the same links, logs and
// processors. No machine fails.
//
//	run.go        the sides, a run, and what is measured
//	load.go       keys, sizes, and clients
//	replicas.go   groups of real replicas
//	published.go  leaders that send sets of units: RSPaxos, CRaft, Crossword
//	chain.go      chain replication
package partitions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// Side is a way to replicate.
type Side struct {
	Name  string
	found func(w *sim, first int) (group, error)
}

// group replicates the puts of a partition.
type group interface {
	// ready reports whether the group takes puts.
	ready() bool
	// put replicates a payload, and calls done when the client may hear of it.
	put(payload []byte, done func())
	// whole reports whether each replica has received all that it is to have of all puts.
	whole() bool
}

// Sides are Weft, full copies, and what the papers have.
func Sides() []Side {
	return []Side{
		replicated("Weft", func() *raft.Coding { return &raft.Coding{} }),
		replicated("full copies", func() *raft.Coding { return nil }),
		published("RSPaxos", func() papers.SetPolicy { return papers.RSPaxos{} }, false),
		published("CRaft", func() papers.SetPolicy { return papers.CRaft{} }, false),
		published("Crossword", func() papers.SetPolicy { return papers.NewCrosswordAdaptive() }, true),
		{"Chain Replication", newChain},
	}
}

// Plan is the machines and the load.
type Plan struct {
	Machines int     // and partitions
	Rate     float64 // of a machine's link, bytes a second
	Delay    time.Duration
	Clients  int
	// Warm is the time of the load before the figures, Time the time of the figures.
	Warm, Time time.Duration
	Seed       uint64
}

// Outcome is what was measured of a run.
type Outcome struct {
	// Answered is puts a second; Received counts all puts, over the time until each replica has
	// received all that it is to have. Units that wait make Answered larger than Received.
	Answered, Received float64
	P50, P99           time.Duration
	// Sent is bytes on all links for a byte of payload, up to the time at which all is received;
	// SentAtOnce is Sent up to the end of the load.
	Sent, SentAtOnce float64
	Busiest          float64 // share of the most loaded link out
	Hottest          float64 // share of the puts at the most loaded partition
}

// sim is a run.
type sim struct {
	*machines.World
	load   load
	groups []group
	ending bool // clients put nothing more
}

// settled is the time in which leaders learn that their members take units.
const settled = time.Second

// Run runs a side.
func (s Side) Run(ctx context.Context, plan Plan) (o Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	w := &sim{load: newLoad(plan)}
	w.World = machines.New(machines.Plan{Nodes: plan.Machines, Rate: plan.Rate, Delay: plan.Delay, Seed: plan.Seed})
	for i := range plan.Machines {
		g, err := s.found(w, i)
		if err != nil {
			return o, err
		}
		w.groups = append(w.groups, g)
	}
	if !w.Until(time.Minute, func() bool { return w.all(group.ready) }) {
		w.Fail("not each group takes puts")
	}
	w.Pass(settled)
	start, idle := w.Now(), w.sent()
	for i := range plan.Clients {
		c := &client{w: w, draws: world.NewDraws(plan.Seed, 1000+uint64(i))}
		w.After(c.draws.Within(0, 2*plan.Delay), c.next)
	}
	w.Pass(plan.Warm)
	before := w.sent()
	w.load.counts = true
	w.Pass(plan.Time)
	w.load.counts, w.ending = false, true
	after, payload := w.sent(), w.load.payload
	for i := range after {
		o.Busiest = max(o.Busiest, float64(after[i]-before[i])/plan.Time.Seconds()/plan.Rate)
	}
	if !w.Until(time.Minute, func() bool { return w.load.open == 0 && w.all(group.whole) }) {
		w.Fail("%d puts do not end, or replicas lag", w.load.open)
	}
	if w.Err() != nil {
		return o, fmt.Errorf("%s: %w", s.Name, w.Err())
	}
	o.Answered = float64(len(w.load.took)) / plan.Time.Seconds()
	o.Received = float64(w.load.puts) / (w.Now() - start).Seconds()
	o.P50, o.P99 = lab.Quantile(w.load.took, 0.5), lab.Quantile(w.load.took, 0.99)
	o.SentAtOnce, o.Sent = float64(sum(after)-sum(idle))/float64(payload), float64(sum(w.sent())-sum(idle))/float64(w.load.payload)
	o.Hottest = w.load.hottest()
	return o, nil
}

func (w *sim) all(is func(group) bool) bool {
	return !slices.ContainsFunc(w.groups, func(g group) bool { return !is(g) })
}

func (w *sim) sent() []int {
	sent, _ := w.Usage()
	return sent
}

func sum(list []int) (s int) {
	for _, n := range list {
		s += n
	}
	return s
}
