// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// placing is whether nodes measure themselves and hand over to faster and to preferred nodes, and their
// weights, as settings: see placement.Weigh.
type placing struct {
	on      bool
	weights [maxNodes + 1]int
}

// drawPlacing has placement on in six of ten runs, half of these with weights that differ.
func drawPlacing(d world.Draws) (p placing) {
	p.on = d.Chance(0.6)
	if d.Chance(0.5) {
		for id := range p.weights {
			p.weights[id] = world.Pick(d, 0, 0, 50, 200, -1)
		}
	}
	return p
}

// newPlacement returns the placement of a process that starts, or nil.
func (n *node) newPlacement() *placement.Node {
	p := &n.w.plan.placing
	if !p.on {
		return nil
	}
	place, err := placement.NewNode(placement.NodeConfig{ID: n.id, Timeout: electionTime, Clock: n.w.Now, Queue: n.egress.standing, Weight: p.weights[n.id]})
	if err != nil {
		n.w.fail(noFailure, "%v: %v", n, err)
	}
	return place
}

// standing returns for how long the first message to a node has waited.
func (e *egress) standing(to uint64) (age time.Duration) {
	for _, class := range [...]wire.Class{wire.ClassControl, wire.ClassAppend} {
		if l := e.lanes[laneID{to, class}]; l != nil && len(l.waiting) > 0 {
			age = max(age, e.n.w.Now()-l.waiting[0].at)
		}
	}
	return age
}
