// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package machines is nodes in virtual time on which several Raft groups have replicas: all groups of a
// node share its processor, its log's writer, and its link in each direction. Replicas are real ones
// (internal/replica), and each applies committed bytes to a state of its own.
//
//	world.go    the nodes
//	node.go     a node
//	process.go  a processor, the writer of a log, and frames of messages
//	card.go     the links of a node
//	member.go   a replica of a group at a node
//	seat.go     what such a member has in common with those of other simulations
package machines

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/world"
)

// Plan is the nodes.
type Plan struct {
	Nodes, Failed int     // the last nodes have failed
	Rate          float64 // of a node's link, bytes a second
	Delay         time.Duration
	Seed          uint64
	Sync          time.Duration // of a write to a disk; 0: 500 µs
	// Processors, unless 0, are those of one machine on which all nodes are processes: their links in have no bound.
	Processors int
}

// World is the nodes of a run.
type World struct {
	Run
	Costs costs.Costs
	Nodes []*Node // with the ids 1, 2, ...
	plan  Plan
	net   *world.Network
	draws world.Draws
	share *world.Processors // nil unless Plan.Processors is set
}

// New returns nodes without replicas.
func New(p Plan) *World {
	w := &World{Costs: costs.Fitted, plan: p, draws: world.NewDraws(p.Seed, 1)}
	w.net = world.NewNetwork(&w.Agenda, world.NewDraws(p.Seed, 2), p.Nodes, &world.Traits{Least: p.Delay})
	if p.Processors > 0 {
		w.share = &world.Processors{Free: p.Processors}
	}
	if p.Sync == 0 {
		w.plan.Sync = syncTime
	}
	for i := range p.Nodes {
		w.Nodes = append(w.Nodes, newNode(w, uint64(i)+1, i >= p.Nodes-p.Failed))
	}
	return w
}

// spent returns the time of the processor that a node has had, or the mean of those that all share.
func (w *World) spent(n *Node) (sum time.Duration) {
	if w.share == nil {
		return n.CPU.Spent
	}
	for _, n := range w.Nodes {
		sum += n.CPU.Spent
	}
	return sum / time.Duration(w.plan.Processors)
}

// Usage returns, by node, the bytes that its link has sent, and the time that its processor has spent.
func (w *World) Usage() (sent []int, spent []time.Duration) {
	for _, n := range w.Nodes {
		sent, spent = append(sent, n.out.sent), append(spent, n.CPU.Spent)
	}
	return sent, spent
}
