// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// node is a machine with one processor, one disk, and a link in each direction.
type node struct {
	w       *sim
	id      uint64
	failed  bool
	cpu     world.CPU
	spent   time.Duration // of the processor, at the last tick
	busy    float64       // share of the time between the last two ticks
	out     card
	entered time.Duration // when all packets have come in
	members map[uint64]*member
	order   []*member

	disk    world.Spindle
	queue   []logWrite
	writing bool
}

// logWrite is a write to the log of a group.
type logWrite struct {
	m *member
	*replica.Append
}

func newNode(w *sim, id uint64, failed bool) *node {
	n := &node{w: w, id: id, failed: failed, members: map[uint64]*member{}, disk: world.NewSpindle(&w.Agenda)}
	n.out = card{n: n, conns: map[conn]*queue{}}
	n.cpu.After = w.After
	if !failed {
		w.After(w.draws.Within(0, tick), n.tick)
	}
	return n
}

// work has the processor do something.
func (n *node) work(cost time.Duration, then func()) {
	n.cpu.Add(func() (time.Duration, func()) { return cost, then })
}

func (n *node) tick() {
	n.w.After(tick, n.tick)
	n.busy, n.spent = min((n.cpu.Spent-n.spent).Seconds()/tick.Seconds(), 1), n.cpu.Spent
	n.work(time.Duration(n.w.Costs.Second.Seconds()*float64(tick)), func() {})
	for _, m := range n.order {
		m.drive.Post(0, func(r *replica.Replica) { r.Tick(n.w.Now()) })
	}
}

// call sends a message between transactions' ranges.
func (n *node) call(to *node, bytes int, then func()) {
	c := &n.w.Costs
	n.work(c.FrameOut+c.Message+costs.PerKiB(bytes, c.KiBOut), func() {
		n.out.put(to.id, wire.ClassAppend, bytes, func() {
			to.work(c.FrameIn+c.Message+costs.PerKiB(bytes, c.KiBIn), then)
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
func (n *node) send(messages []wire.Message) {
	var frames []*frame
	c, cost := &n.w.Costs, time.Duration(0)
	for _, m := range messages {
		if n.w.nodes[m.To-1].failed {
			n.members[m.Group].drive.Unreachable(m.To)
			continue
		}
		b, err := m.MarshalBinary()
		if err != nil {
			n.w.fail("node %d encodes a message: %v", n.id, err)
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
	n.work(cost, func() {
		for _, f := range frames {
			n.out.put(f.to, f.class, f.bytes, func() { n.w.nodes[f.to-1].receive(f) })
		}
	})
}

func (n *node) receive(f *frame) {
	c := &n.w.Costs
	n.work(c.FrameIn+time.Duration(len(f.messages))*c.Message+costs.PerKiB(f.bytes, c.KiBIn), func() {
		for _, b := range f.messages {
			var m wire.Message
			if err := m.UnmarshalBinary(b); err != nil {
				n.w.fail("node %d decodes a message: %v", n.id, err)
				return
			}
			n.members[m.Group].receive(m)
		}
	})
}

// write begins a round of the log's writer, which all groups share.
func (n *node) write() {
	if n.writing || len(n.queue) == 0 {
		return
	}
	n.writing = true
	n.cpu.Add(func() (time.Duration, func()) {
		c, round := &n.w.Costs, n.queue
		n.queue = nil
		cost := c.Write
		for _, x := range round {
			for _, e := range x.Write.Entries {
				cost += c.Entry + costs.PerKiB(proto.Size(e), c.LogKiB)
			}
		}
		return cost, func() { n.disk.Do(syncTime, func() { n.written(round) }) }
	})
}

func (n *node) written(round []logWrite) {
	for _, x := range round {
		if err := x.m.entries.Append(x.Write, nil); err != nil {
			n.w.fail("node %d writes its log: %v", n.id, err)
		}
		x.m.drive.Post(0, func(r *replica.Replica) { r.AppendDone(*x.Append) })
	}
	n.writing = false
	n.write()
}
