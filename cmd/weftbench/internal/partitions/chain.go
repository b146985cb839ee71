// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package partitions

import (
	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/internal/wire"
)

// chain is chain replication (van Renesse and Schneider, OSDI 2004): the head takes puts, each machine
// writes a put to its log and sends it to the next, and the tail answers. The answer takes no time of its
// own.
type chain struct {
	w        *sim
	machines []*machines.Node
	open     int
}

func newChain(w *sim, first int) (group, error) {
	g := &chain{w: w}
	for _, id := range w.ring(first) {
		g.machines = append(g.machines, w.Nodes[id-1])
	}
	return g, nil
}

func (g *chain) ready() bool { return true }

func (g *chain) put(payload []byte, done func()) {
	g.open++
	head := g.machines[0]
	g.w.called(head, len(payload), func() {
		head.Work(g.w.Costs.Propose, func() { g.store(0, len(payload), done) })
	})
}

// store has a machine of the chain, and those behind it, store a put.
func (g *chain) store(i, bytes int, done func()) {
	at := g.machines[i]
	at.Log(messageBytes+bytes, func() {
		at.Work(g.w.Costs.Apply+costs.PerKiB(bytes, g.w.Costs.LogKiB), func() {
			if i+1 == len(g.machines) {
				g.open--
				done()
				return
			}
			at.Call(g.machines[i+1], wire.ClassAppend, messageBytes+bytes, func() { g.store(i+1, bytes, done) })
		})
	})
}

func (g *chain) whole() bool { return g.open == 0 }
