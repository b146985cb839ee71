// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import "github.com/weftraft/weft/internal/world"

// Machines are the hardware of several clusters: they have the time, and each machine's network card, in common. Each node has
// a disk and a processor of its own. Who kills a node of a machine kills all of them: bytes of all that wait in the card are
// lost. Each cluster has its own error: see [Cluster.Err].
type Machines struct {
	agenda world.Agenda
	nodes  []Node
	cards  []*port
}

// NewMachines makes machines.
func NewMachines(nodes []Node) (*Machines, error) {
	for _, n := range nodes {
		if err := n.Validate(); err != nil {
			return nil, err
		}
	}
	return newMachines(nodes), nil
}

func newMachines(nodes []Node) *Machines {
	m := &Machines{nodes: nodes}
	for _, n := range nodes {
		m.cards = append(m.cards, &port{
			agenda: &m.agenda, rate: n.Egress,
			begun: func(k *packet) { k.wire.begun(k) },
			sent:  func(k *packet) { k.wire.carded(k) },
		})
	}
	return m
}

// hardware returns the machines at some places; fewer, if there are no such places.
func (m *Machines) hardware(places []int) (nodes []Node) {
	taken := map[int]bool{}
	for _, at := range places {
		if at >= 0 && at < len(m.nodes) && !taken[at] {
			taken[at] = true
			nodes = append(nodes, m.nodes[at])
		}
	}
	return nodes
}
