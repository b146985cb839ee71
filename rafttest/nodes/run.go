// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"runtime/debug"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/register"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// run runs the nodes drawn by the seed, and reports the result.
func run(seed uint64, opts options) result {
	w := newSim(seed, opts)
	w.guard(func() {
		w.found(seed)
		w.begin()
		w.run()
	})
	return w.result(seed)
}

func newSim(seed uint64, opts options) *sim {
	w := &sim{opts: opts, rng: world.NewDraws(seed, 1), nets: world.NewDraws(seed, 2), disks: world.NewDraws(seed, 3), cli: world.NewDraws(seed, 4), lease: world.NewDraws(seed, 6), gated: world.NewDraws(seed, 13), homes: world.NewDraws(seed, 43), names: world.NewDraws(seed, 15), logNames: world.NewDraws(seed, 42), originals: map[nameKey]wire.Raft{}}
	w.faults = faults{w}
	w.story = world.NewStory(&w.Agenda, opts.Trace)
	w.plan = drawPlan(seed, opts)
	if w.plan.leasing.on {
		w.reach.LeasedRuns++
	}
	w.net = network{w: w, Network: world.NewNetwork(&w.Agenda, w.nets, maxNodes+w.plan.gates.gates, &w.plan.links)}
	w.net.Echoes = world.NewDraws(seed, 41)
	if w.plan.placing.on {
		w.reach.PlacedRuns++
	}
	return w
}

func (w *sim) result(seed uint64) result {
	for _, n := range w.running() {
		n.count()
	}
	for _, gt := range w.gates {
		gt.count()
	}
	w.reach.Fetched, w.reach.FetchesResumed, w.reach.SourcesAbandoned = w.fetched.Fetched, w.fetched.Resumed, w.fetched.Abandoned
	w.reach.NetworkCounts = w.net.NetworkCounts
	r := result{Outcome: seeds.Ended(seed, &w.story, w.failure), Reached: w.reach, Joints: w.joints, Gates: w.gateReach}
	r.Plan, r.Recovery = w.plan.String(), w.end.took
	return r
}

// guard makes a panic a finding like any other.
func (w *sim) guard(run func()) {
	defer func() {
		if x := recover(); x != nil {
			w.fail(noFailure, "%v\n%s", x, debug.Stack())
		}
	}()
	run()
}

// found makes nodes and groups, and starts the first members.
func (w *sim) found(seed uint64) {
	for id := uint64(1); id <= maxNodes; id++ {
		w.nodes = append(w.nodes, w.newNode(id, seed))
	}
	for id := range w.plan.groups {
		w.groups = append(w.groups, newGroup(w, uint64(id+1)))
	}
	for _, n := range w.nodes[:w.plan.voters] {
		n.start()
	}
}

// begin plans what is to happen: faults, clients, and the calm.
func (w *sim) begin() {
	f := faults{w}
	f.begin()
	w.startGates()
	f.beginGates()
	if w.opts.Brief { // nothing happens without a leader
		w.After(tickTime, f.campaign)
	}
	for _, g := range w.groups {
		for range w.plan.clients {
			w.addClient(g)
		}
	}
	w.At(w.plan.duration, w.calm)
}

func (w *sim) startGates() {
	for i := range w.plan.gates.gates {
		w.gates = append(w.gates, &gate{process: process{w: w, id: maxNodes + 1 + uint64(i)}})
		w.gates[i].start()
	}
}

func (w *sim) run() {
	for w.failure == nil && !w.end.done {
		w.next()
	}
	w.checkHistory()
}

// checkHistory looks for an order of the operations, each between its call and
// its return, with the recorded results.
func (w *sim) checkHistory() {
	if w.failure != nil {
		return
	}
	type place struct {
		group uint64
		key   uint8
	}
	by := map[place][]*operation{}
	for _, op := range w.history.ops {
		if !op.finished && (op.verb == verbGet || !w.groups[op.group-1].effects[op.id]) {
			continue // the result was not seen, or the operation never took effect
		}
		at := place{op.group, op.key}
		by[at] = append(by[at], op)
	}
	for _, g := range w.groups {
		for key := range uint8(storeKeys) {
			ops := by[place{g.id, key}]
			if err := register.Check(ops, (*operation).access); err != nil {
				w.fail(linearizability, "group %d, key %d:\n%v", g.id, key, err)
				return
			}
		}
	}
}
