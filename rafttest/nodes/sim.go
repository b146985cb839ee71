// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// sim is one run.
type sim struct {
	world.Agenda
	story world.Story
	opts  options
	plan  plan
	// Streams of randomness: for hosts and faults, for the network, for disks,
	// for clients, for readers and operators of leases, for names.
	rng, nets, disks, cli, lease, names, logNames world.Draws
	originals                                     map[nameKey]wire.Raft // of messages with names

	nodes   []*node // by id, from 1
	groups  []*group
	net     network
	clients []*client
	gates   []*gate
	gated   world.Draws // for gateways
	history history
	reach   reach
	fetched fetch.Counts
	joints  jointReach

	gateReach gateReach
	events    uint64
	late      time.Duration // the most that a call ended behind its deadline
	calming   bool
	finale    *finale
	failure   *world.Violation
}

// mostEvents bounds a run: a run with more events makes no progress.
const mostEvents = 3_000_000

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
	w := &sim{opts: opts, rng: world.NewDraws(seed, 1), nets: world.NewDraws(seed, 2), disks: world.NewDraws(seed, 3), cli: world.NewDraws(seed, 4), lease: world.NewDraws(seed, 6), gated: world.NewDraws(seed, 13), names: world.NewDraws(seed, 15), logNames: world.NewDraws(seed, 42), originals: map[nameKey]wire.Raft{}}
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
		n.countLeases()
		n.countReports()
		n.countCatchUp()
	}
	for _, gt := range w.gates {
		gt.count()
	}
	w.reach.Fetched, w.reach.FetchesResumed, w.reach.SourcesAbandoned = w.fetched.Fetched, w.fetched.Resumed, w.fetched.Abandoned
	w.reach.NetworkCounts = w.net.NetworkCounts
	r := result{Seed: seed, Hash: w.story.Hash, Lines: w.story.Lines, Events: w.events, Plan: w.plan.String(), Reached: w.reach, Joints: w.joints, Gates: w.gateReach}
	if w.finale != nil {
		r.Recovery = w.finale.took
	}
	if w.failure != nil {
		r.Err, r.Story = w.failure, w.story.Recent()
	}
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
	w.beginFaults()
	w.beginGates()
	if w.opts.Brief { // nothing happens without a leader
		w.After(tickTime, w.campaign)
	}
	for _, g := range w.groups {
		for range w.plan.clients {
			w.addClient(g)
		}
	}
	w.At(w.plan.duration, w.calm)
}

func (w *sim) run() {
	for w.failure == nil && (w.finale == nil || !w.finale.done) {
		w.next()
	}
	w.checkHistory()
}

// next lets the next event happen.
func (w *sim) next() {
	w.events++
	if w.events > mostEvents {
		w.fail(liveness, "%d events, and no end", w.events)
		return
	}
	w.Step(w.plan.duration + 2*finaleTime)
}

// until runs until a condition holds. The result is false if the condition does
// not hold within a time.
func (w *sim) until(limit time.Duration, so func() bool) bool {
	end := w.Now() + limit
	for w.failure == nil && !so() {
		if w.Now() >= end {
			return false
		}
		w.events++
		w.Step(end)
	}
	return w.failure == nil
}

func (w *sim) node(id uint64) *node {
	if id == 0 || id > uint64(len(w.nodes)) {
		return nil
	}
	return w.nodes[id-1]
}

// running returns the nodes whose process runs, paused or not.
func (w *sim) running() []*node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return !n.up })
}

func (w *sim) tell(node uint64, format string, args ...any) {
	w.story.Tell(node, format, args...)
}

// fail records the first invariant that does not hold; the run ends.
func (w *sim) fail(invariant, format string, args ...any) {
	if w.failure != nil {
		return
	}
	w.failure = &world.Violation{Invariant: invariant, At: w.Now(), Detail: fmt.Sprintf(format, args...)}
	w.tell(0, "VIOLATION %s: %s", invariant, w.failure.Detail)
}

// leading returns the member that leads the highest term of a group, or nil.
func (g *group) leading() (best *member) {
	term := uint64(0)
	for _, n := range g.w.nodes {
		m := n.members[g.id]
		if !n.up || m == nil || m.core == nil {
			continue
		}
		if st := m.core.State(); st.Role == raft.StateLeader && st.Term > term {
			best, term = m, st.Term
		}
	}
	return best
}
