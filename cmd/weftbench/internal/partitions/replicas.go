// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package partitions

import (
	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/raft"
)

// replicas is a group of real replicas; the first leads.
type replicas struct {
	w       *sim
	members []*machines.Member
}

func replicated(name string, coding func() *raft.Coding) Side {
	return Side{name, func(w *sim, first int) (group, error) {
		g := &replicas{w: w}
		peers := w.ring(first)
		for _, id := range peers {
			m, err := w.Nodes[id-1].Join(machines.Place{Group: uint64(first) + 1, Peers: peers, Coding: coding(), Apply: func([]byte) error { return nil }})
			if err != nil {
				return nil, err
			}
			g.members = append(g.members, m)
		}
		g.members[0].Campaign()
		return g, nil
	}}
}

// ring returns the ids of all machines, from one on.
func (w *sim) ring(first int) (ids []uint64) {
	for i := range w.Nodes {
		ids = append(ids, w.Nodes[(first+i)%len(w.Nodes)].ID)
	}
	return ids
}

// called has a machine take a client's call, and then does something.
func (w *sim) called(n *machines.Node, bytes int, then func()) {
	n.Work(w.Costs.RPC+costs.PerKiB(bytes, w.Costs.CallKiB), then)
}

func (g *replicas) ready() bool { return g.members[0].Leads() }

func (g *replicas) put(payload []byte, done func()) {
	g.w.called(g.members[0].Node, len(payload), func() { g.members[0].Propose(payload, done) })
}

func (g *replicas) whole() bool {
	for _, m := range g.members {
		if m.Applied != g.members[0].Applied {
			return false
		}
	}
	return g.ready()
}
