// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
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
	faults  provoker
	clients int
	gates   []*gate
	gated   world.Draws // for gateways
	homes   world.Draws // for their homes
	history history
	reach   reach
	fetched fetch.Counts
	joints  jointReach

	gateReach gateReach
	events    uint64
	late      time.Duration // the most that a call ended behind its deadline
	calming   bool
	end       ending
	failure   *world.Violation
}

// ending is how a run ends: all is well, so long after the last fault.
type ending struct {
	done bool
	took time.Duration
}

// provoker hears of the moments at which bad luck hurts most. It is [faults]; the world
// does not know which faults there are.
type provoker interface {
	// meets hears of a moment at a member.
	meets(m *member, at moment)
	// stalled hears of a log without room, torn of a write that power has ended, early of
	// a node that is about to apply what its log lacks.
	stalled(n *node)
	torn(n *node)
	early(n *node)
	// offered hears of a member that begins to take a snapshot, delivered of each message.
	offered(m *member)
	delivered(m *member, msg wire.Message)
}

// mostEvents bounds a run: a run with more events makes no progress. finaleTime is how long
// the nodes may take, once the faults are over, until all is well.
const (
	mostEvents = 3_000_000
	finaleTime = 80 * electionTime
)

// next lets the next event happen.
func (w *sim) next() {
	w.events++
	if w.events > mostEvents {
		w.fail(liveness, "%d events, and no end", w.events)
		return
	}
	w.Step(w.plan.duration + 2*finaleTime)
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

func (w *sim) gate(id uint64) *gate {
	if id <= maxNodes || id > maxNodes+uint64(len(w.gates)) {
		return nil
	}
	return w.gates[id-maxNodes-1]
}
