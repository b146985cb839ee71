// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// Node is a machine with one processor, one disk, and a link in each direction.
type Node struct {
	w       *World
	ID      uint64
	Failed  bool
	cpu     world.CPU
	spent   time.Duration // as in World.spent, at the last tick
	busy    float64       // share of the time between the last two ticks
	out     card
	entered time.Duration // when all packets have come in
	members map[uint64]*Member
	order   []*Member

	disk    world.Spindle
	queue   []logWrite
	writing bool
}

// logWrite is a write to the log of a group: the processor's time, and what happens when it is durable.
type logWrite struct {
	cost time.Duration
	then func()
}

func newNode(w *World, id uint64, failed bool) *Node {
	n := &Node{w: w, ID: id, Failed: failed, members: map[uint64]*Member{}, disk: world.NewSpindle(&w.Agenda)}
	n.out = card{n: n, conns: map[conn]*queue{}}
	n.cpu.After, n.cpu.Wake, n.cpu.Share = w.After, w.Costs.Wake, w.share
	if !failed {
		w.After(w.draws.Within(0, tick), n.tick)
	}
	return n
}

// Work has the processor do something.
func (n *Node) Work(cost time.Duration, then func()) {
	n.cpu.Add(func() (time.Duration, func()) { return cost, then })
}

func (n *Node) tick() {
	n.w.After(tick, n.tick)
	spent := n.w.spent(n)
	n.busy, n.spent = min((spent-n.spent).Seconds()/tick.Seconds(), 1), spent
	n.Work(time.Duration((n.w.Costs.Second+n.w.Costs.WakeSecond).Seconds()*float64(tick)), func() {})
	for _, m := range n.order {
		m.Tick()
	}
}

// Call sends a frame with a message beside those of replicas.
func (n *Node) Call(to *Node, class wire.Class, bytes int, then func()) {
	c := &n.w.Costs
	n.Work(c.FrameOut+c.Message+costs.PerKiB(bytes, c.KiBOut), func() {
		n.out.put(to.ID, class, bytes, func() {
			to.Work(c.FrameIn+c.Message+costs.PerKiB(bytes, c.KiBIn), then)
		})
	})
}

// frame is messages to a node, of all groups.
type frame struct {
	conn
	messages [][]byte
	bytes    int
}

// send sends messages; what goes to a node in one class is a frame.
func (n *Node) send(messages []wire.Message) {
	var frames []*frame
	c, cost := &n.w.Costs, time.Duration(0)
	for _, m := range messages {
		if n.w.Nodes[m.To-1].Failed {
			n.members[m.Group].Drive.Unreachable(m.To)
			continue
		}
		b, err := m.MarshalBinary()
		if err != nil {
			n.w.Fail("node %d encodes a message: %v", n.ID, err)
			return
		}
		at := conn{m.To, m.Class()}
		i := slices.IndexFunc(frames, func(f *frame) bool { return f.conn == at })
		if i < 0 {
			i = len(frames)
			frames = append(frames, &frame{conn: at})
		}
		frames[i].messages, frames[i].bytes = append(frames[i].messages, b), frames[i].bytes+len(b)
	}
	for _, f := range frames {
		cost += c.FrameOut + time.Duration(len(f.messages))*c.Message + costs.PerKiB(f.bytes, c.KiBOut)
	}
	n.Work(cost, func() {
		for _, f := range frames {
			n.out.put(f.to, f.class, f.bytes, func() { n.w.Nodes[f.to-1].receive(f) })
		}
	})
}

func (n *Node) receive(f *frame) {
	c := &n.w.Costs
	n.Work(c.FrameIn+time.Duration(len(f.messages))*c.Message+costs.PerKiB(f.bytes, c.KiBIn), func() {
		for _, b := range f.messages {
			var m wire.Message
			if err := m.UnmarshalBinary(b); err != nil {
				n.w.Fail("node %d decodes a message: %v", n.ID, err)
				return
			}
			n.members[m.Group].Receive(m)
		}
	})
}

// Log writes so many bytes to the log, in an entry beside those of replicas.
func (n *Node) Log(bytes int, then func()) {
	n.log(n.w.Costs.Entry+costs.PerKiB(bytes, n.w.Costs.LogKiB), then)
}

func (n *Node) log(cost time.Duration, then func()) {
	n.queue = append(n.queue, logWrite{cost, then})
	n.write()
}

// write begins a round of the log's writer, which all groups share.
func (n *Node) write() {
	if n.writing || len(n.queue) == 0 {
		return
	}
	n.writing = true
	n.cpu.Add(func() (time.Duration, func()) {
		round, cost := n.queue, n.w.Costs.Write+n.w.Costs.WakeWrite
		n.queue = nil
		for _, x := range round {
			cost += x.cost
		}
		return cost, func() { n.disk.Do(n.w.plan.Sync, func() { n.written(round) }) }
	})
}

func (n *Node) written(round []logWrite) {
	for _, x := range round {
		x.then()
	}
	n.writing = false
	n.write()
}
