// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package machines is nodes in virtual time on which several Raft groups have replicas: all groups of a
// node share its processor, its log's writer, and its link in each direction. Replicas are real ones
// (internal/replica), and each applies committed bytes to a state of its own.
//
//	world.go   the nodes, and the failure that ends a run
//	node.go    a node: processor, log, messages
//	card.go    the links of a node
//	member.go  a replica of a group at a node
package machines

import (
	"fmt"
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
}

// World is the nodes of a run.
type World struct {
	world.Agenda
	Costs costs.Costs
	Nodes []*Node // with the ids 1, 2, ...
	plan  Plan
	net   *world.Network
	draws world.Draws
	err   error
}

// New returns nodes without replicas.
func New(p Plan) *World {
	w := &World{Costs: costs.Fitted, plan: p, draws: world.NewDraws(p.Seed, 1)}
	w.net = world.NewNetwork(&w.Agenda, world.NewDraws(p.Seed, 2), p.Nodes, &world.Traits{Least: p.Delay})
	for i := range p.Nodes {
		w.Nodes = append(w.Nodes, newNode(w, uint64(i)+1, i >= p.Nodes-p.Failed))
	}
	return w
}

// Fail ends the run with an error, unless another failure came first.
func (w *World) Fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %v: "+format, append([]any{w.Now()}, args...)...)
	}
}

// Err returns the failure of the run.
func (w *World) Err() error { return w.err }

// Until lets time pass until something is the case, or for so long.
func (w *World) Until(most time.Duration, done func() bool) bool {
	for end := w.Now() + most; w.err == nil && !done(); {
		if !w.Step(end) {
			return done()
		}
	}
	return w.err == nil
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) { w.Until(d, func() bool { return false }) }

// Usage returns, by node, the bytes that its link has sent, and the time that its processor has spent.
func (w *World) Usage() (sent []int, spent []time.Duration) {
	for _, n := range w.Nodes {
		sent, spent = append(sent, n.out.sent), append(spent, n.cpu.Spent)
	}
	return sent, spent
}
