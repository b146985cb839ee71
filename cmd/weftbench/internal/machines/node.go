// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/wire"
)

// Node is a machine with one processor, one disk, and a link in each direction.
type Node struct {
	Process
	w       *World
	ID      uint64
	Failed  bool
	spent   time.Duration // as in World.spent, at the last tick
	busy    float64       // share of the time between the last two ticks
	out     card
	entered time.Duration // when all packets have come in
	trials  *adaptive.Trials
	members map[uint64]*Member
	order   []*Member
}

func newNode(w *World, id uint64, failed bool) *Node {
	n := &Node{w: w, ID: id, Failed: failed, trials: adaptive.NewTrials(w.Now), members: map[uint64]*Member{}, Process: NewProcess(&w.Run, &w.Costs, w.plan.Sync, fmt.Sprint("node ", id))}
	n.out = card{n: n, conns: map[conn]*queue{}}
	n.CPU.Share = w.share
	if !failed {
		w.After(w.draws.Within(0, tick), n.tick)
	}
	return n
}

func (n *Node) tick() {
	n.w.After(tick, n.tick)
	spent := n.w.spent(n)
	n.busy, n.spent = min((spent-n.spent).Seconds()/tick.Seconds(), 1), spent
	n.Idle(tick)
	for _, m := range n.order {
		m.Tick()
	}
}

// Call sends a frame with a message beside those of replicas.
func (n *Node) Call(to *Node, class wire.Class, bytes int, then func()) {
	n.Work(n.outCost(1, bytes), func() {
		n.out.put(to.ID, class, bytes, func() { to.Work(to.inCost(1, bytes), then) })
	})
}

// send sends messages, but to nodes that have failed.
func (n *Node) send(messages []wire.Message) {
	var reach []wire.Message
	for _, m := range messages {
		if n.w.Nodes[m.To-1].Failed {
			n.members[m.Group].Drive.Unreachable(m.To)
		} else {
			reach = append(reach, m)
		}
	}
	n.Post(reach, false, func(f *Frame) {
		to := n.w.Nodes[f.To-1]
		n.out.put(f.To, f.Class, f.Bytes, func() {
			to.Take(f, func(m wire.Message) { to.members[m.Group].Receive(m) })
		})
	})
}

// Log writes so many bytes to the log, in an entry beside those of replicas.
func (n *Node) Log(bytes int, then func()) {
	n.Write(n.w.Costs.Entry+costs.PerKiB(bytes, n.w.Costs.LogKiB), then)
}
